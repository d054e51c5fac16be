CREATE TABLE branches (branch_id INTEGER PRIMARY KEY, city VARCHAR NOT NULL, region VARCHAR NOT NULL);
CREATE TABLE rates (currency VARCHAR PRIMARY KEY, to_eur DOUBLE NOT NULL);
CREATE TABLE clients (client_id INTEGER PRIMARY KEY, born INTEGER, branch_id INTEGER REFERENCES branches (branch_id),
  segment VARCHAR NOT NULL, score DOUBLE);
CREATE TABLE accounts (account_id INTEGER PRIMARY KEY, client_id INTEGER NOT NULL REFERENCES clients (client_id),
  kind VARCHAR NOT NULL, balance DECIMAL(12, 2), opened DATE NOT NULL);
CREATE TABLE transfers (account_id INTEGER NOT NULL REFERENCES accounts (account_id), ts TIMESTAMP NOT NULL,
  amount DECIMAL(12, 2), currency VARCHAR NOT NULL REFERENCES rates (currency), merchant VARCHAR, flagged BOOLEAN NOT NULL);
CREATE TABLE loans (client_id INTEGER NOT NULL REFERENCES clients (client_id), principal DECIMAL(12, 2),
  rate DOUBLE, months INTEGER, defaulted BOOLEAN NOT NULL);
