"""A clinic that does not exist: patients and visits with skew, gaps and the states of the LRM paper's Figure 1.

All values follow from the row's number by hashing, so that every machine generates the same clinic.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

_PATIENTS = """
CREATE TABLE patients AS
WITH draws AS (
    SELECT
        i AS patient_id,
        hash('state' || i) / 18446744073709551616.0 AS u_state,
        hash('sex' || i) / 18446744073709551616.0 AS u_sex,
        hash('age' || i) / 18446744073709551616.0 AS u_age,
        hash('hiv' || i) / 18446744073709551616.0 AS u_hiv,
        hash('income' || i) / 18446744073709551616.0 AS u_income,
        hash('gap' || i) / 18446744073709551616.0 AS u_gap
    FROM range({patients}) AS numbers(i)
)
SELECT
    patient_id::INTEGER AS patient_id,
    CASE WHEN u_gap < 0.02 THEN NULL WHEN u_state < 0.46 THEN 'NY' WHEN u_state < 0.68 THEN 'CA'
         WHEN u_state < 0.84 THEN 'NJ' WHEN u_state < 0.93 THEN 'WA' WHEN u_state < 0.97 THEN 'OR'
         ELSE 'PR' END AS state,
    CASE WHEN u_sex < 0.53 THEN 'F' WHEN u_sex < 0.995 THEN 'M' END AS sex,
    CASE WHEN u_gap > 0.97 THEN NULL ELSE floor(98 * u_age ** 0.8)::INTEGER END AS age,
    CASE WHEN u_hiv > 0.95 THEN NULL ELSE u_hiv < 0.012 + 0.02 * (u_state < 0.46)::INTEGER END AS hiv,
    CASE WHEN u_income < 0.1 THEN NULL ELSE round(18000 * exp(2.1 * u_income ** 3), 2) END AS income
FROM draws
"""

_VISITS = """
CREATE TABLE visits AS
WITH numbered AS (
    SELECT
        patient_id,
        unnest(range(floor(8 * (hash('visits' || patient_id) / 18446744073709551616.0) ** 4)::INTEGER + 1)) AS n
    FROM patients
), draws AS (
    SELECT
        patient_id,
        hash('department' || patient_id || '-' || n) / 18446744073709551616.0 AS u_department,
        hash('day' || patient_id || '-' || n) / 18446744073709551616.0 AS u_day,
        hash('cost' || patient_id || '-' || n) / 18446744073709551616.0 AS u_cost,
        hash('urgent' || patient_id || '-' || n) / 18446744073709551616.0 AS u_urgent
    FROM numbered
)
SELECT
    CASE WHEN u_day > 0.999 THEN NULL ELSE patient_id END AS patient_id,
    CASE WHEN u_department < 0.28 THEN 'emergency' WHEN u_department < 0.36 THEN 'surgery'
         WHEN u_department < 0.48 THEN 'cardiology' WHEN u_department < 0.55 THEN 'oncology'
         WHEN u_department < 0.68 THEN 'paediatrics' WHEN u_department < 0.99 THEN 'general' END AS department,
    DATE '2024-01-01' + floor(731 * u_day)::INTEGER AS day,
    u_urgent < 0.2 + 0.5 * (u_department < 0.28)::INTEGER AS urgent,
    round(60 * exp(5.5 * u_cost ** 2), 2) AS cost,
    CASE WHEN u_cost > 0.6 THEN floor(40 * (u_cost - 0.6) ** 2 * 5)::INTEGER ELSE 0 END AS nights
FROM draws
"""


def build(path: Path, patients: int = 40_000) -> None:
    """Write the clinic's database to a new DuckDB file."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(_PATIENTS.format(patients=patients))
        connection.execute(_VISITS)
