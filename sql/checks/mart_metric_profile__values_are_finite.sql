-- Every current value is a finite number.
-- severity: warn
-- blocking: false
select
    migration,
    run_name,
    metric,
    first_nonfinite_step as first_step,
    point_count - finite_count as step_count,
    nan_count,
    pos_inf_count,
    neg_inf_count,
    nonfinite_unknown_count,
    rewritten_suspect_count
from mart_metric_profile
where finite_count < point_count
order by first_step, metric
