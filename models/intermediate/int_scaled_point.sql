-- Finite current values of a run on the scale on which runs are compared; contaminated steps are left out.
-- grain: run_id, metric_id, step_axis, step
-- materialized: incremental(run_id)
with points as (
    select
        run_id,
        metric_id,
        step_axis,
        step,
        value
    from fct_metric
    where is_current and value_kind = 'finite'
),

metrics as (
    select
        metric_id,
        scale,
        scale_constant
    from dim_metric
    where scale <> 'constant'
),

contaminated as (
    select distinct
        run_id,
        metric_id,
        step_axis,
        step
    from int_contaminated_step
),

clean as (
    select
        points.run_id,
        points.metric_id,
        points.step_axis,
        points.step,
        points.value,
        metrics.scale,
        metrics.scale_constant
    from points
    inner join metrics on points.metric_id = metrics.metric_id
    anti join contaminated
        on
            points.run_id = contaminated.run_id
            and points.metric_id = contaminated.metric_id
            and points.step_axis = contaminated.step_axis
            and points.step = contaminated.step
),

differenced as (
    select
        *,
        value - lag(value) over (
            partition by run_id, metric_id, step_axis
            order by step
        ) as increase
    from clean
),

scaled as (
    select
        run_id,
        metric_id,
        step_axis,
        step,
        value,
        comparison_value(value, increase, scale, scale_constant) as scaled_value
    from differenced
)

select
    run_id,  -- the run
    metric_id,  -- the metric
    step_axis,  -- which counter the step counts
    step,  -- the step
    value,  -- the value as logged
    scaled_value  -- the value on the metric's comparison scale
from scaled
where isfinite(scaled_value)
