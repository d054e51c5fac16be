CREATE TABLE dates (d_datekey INTEGER PRIMARY KEY, d_date DATE NOT NULL, d_year INTEGER NOT NULL,
  d_yearmonthnum INTEGER NOT NULL, d_yearmonth VARCHAR NOT NULL, d_weeknuminyear INTEGER NOT NULL,
  d_monthnuminyear INTEGER NOT NULL);
CREATE TABLE part (p_partkey INTEGER PRIMARY KEY, p_name VARCHAR, p_mfgr VARCHAR NOT NULL, p_category VARCHAR NOT NULL,
  p_brand1 VARCHAR NOT NULL, p_color VARCHAR, p_size INTEGER);
CREATE TABLE supplier (s_suppkey INTEGER PRIMARY KEY, s_name VARCHAR, s_city VARCHAR NOT NULL,
  s_nation VARCHAR NOT NULL, s_region VARCHAR NOT NULL);
CREATE TABLE customer (c_custkey INTEGER PRIMARY KEY, c_name VARCHAR NOT NULL, c_city VARCHAR NOT NULL,
  c_nation VARCHAR NOT NULL, c_region VARCHAR NOT NULL, c_mktsegment VARCHAR NOT NULL);
CREATE TABLE lineorder (lo_orderkey INTEGER NOT NULL, lo_linenumber INTEGER NOT NULL,
  lo_custkey INTEGER NOT NULL REFERENCES customer (c_custkey), lo_partkey INTEGER NOT NULL REFERENCES part (p_partkey),
  lo_suppkey INTEGER NOT NULL REFERENCES supplier (s_suppkey),
  lo_orderdate INTEGER NOT NULL REFERENCES dates (d_datekey), lo_orderpriority VARCHAR, lo_quantity INTEGER NOT NULL,
  lo_extendedprice INTEGER NOT NULL, lo_discount INTEGER NOT NULL, lo_revenue INTEGER NOT NULL,
  lo_supplycost INTEGER NOT NULL, lo_shipmode VARCHAR);
