-- Limits that the tests and verdicts use. What they were measured against is in docs/statistics.md.
create or replace macro drift_q_limit() as 0.05;
create or replace macro decouple_p_limit() as 0.001;

-- Without replicates a statistic is divided by this much; with few of them it counts like so many differences.
create or replace macro prior_inflation() as 3.0;
create or replace macro prior_degrees() as 1.0;
