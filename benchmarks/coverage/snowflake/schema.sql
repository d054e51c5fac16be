CREATE TABLE region_codes (region_id INTEGER PRIMARY KEY, region VARCHAR NOT NULL, population INTEGER NOT NULL);
CREATE TABLE members (email VARCHAR NOT NULL, region_id INTEGER REFERENCES region_codes (region_id), age_band VARCHAR,
  income DECIMAL(10, 2), joined TIMESTAMP NOT NULL);
CREATE TABLE exposures (email VARCHAR NOT NULL, campaign VARCHAR, ts TIMESTAMP NOT NULL, cost DECIMAL(8, 4));
CREATE TABLE sales (email VARCHAR NOT NULL, sku VARCHAR, ts TIMESTAMP NOT NULL, amount DECIMAL(10, 2));
