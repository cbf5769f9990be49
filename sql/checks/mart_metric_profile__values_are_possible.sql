-- Every current value lies in the domain of its metric.
-- severity: warn
-- blocking: false
select
    migration,
    run_name,
    metric,
    first_outside_step as first_step,
    outside_count as step_count,
    low,
    high
from mart_metric_profile
where outside_count > 0
order by first_step, metric
