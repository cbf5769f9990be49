-- An anomaly is listed once.
-- severity: error
-- blocking: true
select
    run_id,
    step_axis,
    attempt,
    step,
    metric,
    rule_id,
    count(*) as row_count
from mart_anomaly
group by run_id, step_axis, attempt, step, metric, rule_id
having count(*) > 1
