CREATE TABLE pages (page_id INTEGER PRIMARY KEY, path VARCHAR NOT NULL, section VARCHAR NOT NULL, author VARCHAR);
CREATE TABLE campaigns (campaign_id INTEGER PRIMARY KEY, channel VARCHAR NOT NULL, spend DECIMAL(10, 2) NOT NULL);
CREATE TABLE users (user_id INTEGER PRIMARY KEY, country VARCHAR, plan VARCHAR NOT NULL, signed_up DATE NOT NULL,
  campaign_id INTEGER REFERENCES campaigns (campaign_id));
CREATE TABLE events (user_id INTEGER NOT NULL REFERENCES users (user_id), session_id INTEGER NOT NULL,
  page_id INTEGER REFERENCES pages (page_id), kind VARCHAR NOT NULL, ts TIMESTAMP NOT NULL, device VARCHAR,
  load_ms DOUBLE, query VARCHAR);
CREATE TABLE purchases (user_id INTEGER NOT NULL REFERENCES users (user_id), ts TIMESTAMP NOT NULL,
  amount DECIMAL(10, 2), coupon VARCHAR);
