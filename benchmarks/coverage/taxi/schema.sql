CREATE TABLE zones (LocationID INTEGER PRIMARY KEY, Borough VARCHAR NOT NULL, Zone VARCHAR NOT NULL);
CREATE TABLE payment_types (payment_type INTEGER PRIMARY KEY, description VARCHAR NOT NULL);
CREATE TABLE trips (driver_id INTEGER NOT NULL, VendorID INTEGER, pickup_datetime TIMESTAMP NOT NULL,
  dropoff_datetime TIMESTAMP NOT NULL, passenger_count INTEGER, trip_distance DOUBLE, cab_type VARCHAR NOT NULL,
  PULocationID INTEGER REFERENCES zones (LocationID), DOLocationID INTEGER REFERENCES zones (LocationID),
  payment_type INTEGER REFERENCES payment_types (payment_type), fare_amount DOUBLE, tip_amount DOUBLE,
  tolls_amount DOUBLE, total_amount DOUBLE);
