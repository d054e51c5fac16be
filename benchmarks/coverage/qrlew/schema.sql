CREATE TABLE users (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, age INTEGER, city VARCHAR NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES users (id), description VARCHAR,
  date DATE NOT NULL);
CREATE TABLE items (order_id INTEGER NOT NULL REFERENCES orders (id), item VARCHAR NOT NULL, price DOUBLE);
CREATE TABLE census (age INTEGER, workclass VARCHAR, education VARCHAR, marital_status VARCHAR, sex VARCHAR,
  hours_per_week INTEGER, capital_gain INTEGER, income VARCHAR);
