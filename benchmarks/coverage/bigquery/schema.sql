CREATE TABLE products (item VARCHAR PRIMARY KEY, category VARCHAR NOT NULL, price DOUBLE NOT NULL);
CREATE TABLE students (id INTEGER PRIMARY KEY, test_score INTEGER, grade VARCHAR, school VARCHAR NOT NULL);
CREATE TABLE professors (id INTEGER PRIMARY KEY, department VARCHAR);
CREATE TABLE requests (id INTEGER NOT NULL REFERENCES professors (id), item VARCHAR NOT NULL REFERENCES products (item),
  quantity INTEGER, requested TIMESTAMP NOT NULL);
CREATE TABLE reviews (id INTEGER NOT NULL REFERENCES professors (id), stars INTEGER, words INTEGER, score DECIMAL(4, 2));
