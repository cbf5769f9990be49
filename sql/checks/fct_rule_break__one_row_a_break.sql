-- A broken rule is stored once for each step and metric.
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
from fct_rule_break
group by run_id, step_axis, attempt, step, metric, rule_id
having count(*) > 1
