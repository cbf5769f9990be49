-- Which rules do the runs break, how often, and from which step?
-- test: count(*) filter (where run_name = 'npu_ess_overflow_at60' and severity = 'error' and first_step = 60) >= 1
-- test: count(*) filter (where severity = 'error' and run_name <> 'npu_ess_overflow_at60') = 0
select
    runs.migration,
    runs.run_name,
    anomalies.severity,
    anomalies.rule_id,
    anomalies.metric,
    count(distinct anomalies.step) as steps,
    min(anomalies.step) as first_step,
    arg_min(anomalies.observed, anomalies.step) as first_seen,
    any_value(anomalies.expected) as expected,
    any_value(coalesce(rules.meaning, anomalies.meaning)) as meaning
from mart_anomaly as anomalies
inner join dim_run as runs on anomalies.run_id = runs.run_id
left join dim_rule as rules on anomalies.rule_id = rules.rule_id
group by runs.migration, runs.run_name, anomalies.severity, anomalies.rule_id, anomalies.metric
order by anomalies.severity asc, steps desc, runs.migration asc, runs.run_name asc
