-- No rule of severity error is broken in any run.
-- severity: error
-- blocking: false
select
    migration,
    run_name,
    metric,
    rule_id,
    cause,
    min(step) as first_step,
    count(*) as step_count,
    arg_min(observed, step) as first_observed,
    arg_min(expected, step) as expected
from mart_anomaly
where severity = 'error'
group by migration, run_name, metric, rule_id, cause
order by first_step, metric
