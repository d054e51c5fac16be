CREATE TABLE wards (ward_id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, building VARCHAR NOT NULL, beds INTEGER NOT NULL);
CREATE TABLE drugs (drug_id INTEGER PRIMARY KEY, drug VARCHAR NOT NULL, class VARCHAR NOT NULL, unit_price DECIMAL(8, 2));
CREATE TABLE patients (patient_id INTEGER PRIMARY KEY, sex VARCHAR, birth_year INTEGER, state VARCHAR, smoker BOOLEAN,
  bmi DOUBLE, insurer VARCHAR);
CREATE TABLE visits (visit_id INTEGER PRIMARY KEY, patient_id INTEGER NOT NULL REFERENCES patients (patient_id),
  ward_id INTEGER REFERENCES wards (ward_id), admitted TIMESTAMP NOT NULL, discharged TIMESTAMP, urgent BOOLEAN NOT NULL,
  cost DECIMAL(10, 2), nights INTEGER, diagnosis VARCHAR);
CREATE TABLE prescriptions (patient_id INTEGER NOT NULL REFERENCES patients (patient_id),
  drug_id INTEGER NOT NULL REFERENCES drugs (drug_id), day DATE NOT NULL, dose_mg INTEGER);
CREATE TABLE labs (visit_id INTEGER NOT NULL REFERENCES visits (visit_id), test VARCHAR NOT NULL, result DOUBLE);
