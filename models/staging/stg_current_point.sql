-- Points as analysts want them: the current write of each metric and step, with the names of run and metric.
-- grain: run_id, metric_id, step_axis, step
-- materialized: view
with points as (
    select * from fct_metric
),

runs as (
    select * from dim_run
),

metrics as (
    select * from dim_metric
)

select
    points.run_id,  -- the run
    runs.migration,  -- its migration
    runs.run_name,  -- its name
    points.metric_id,  -- the metric
    metrics.metric,  -- its canonical name
    metrics.category,  -- its category
    points.step_axis,  -- which counter the step counts
    points.step,  -- the step
    points.value,  -- the value; NaN and infinities as such, null where only "not finite" is known
    points.value_kind,  -- finite, nan, pos_inf, neg_inf, nonfinite_unknown or rewritten_suspect
    points.value_kind = 'finite' as is_finite  -- the value may be averaged
from points
inner join runs on points.run_id = runs.run_id
inner join metrics on points.metric_id = metrics.metric_id
where points.is_current
