-- What the current values of a metric look like in a run: how many of which kind, their range and quantiles.
-- grain: run_id, metric_id
-- materialized: incremental(run_id)
with points as (
    select * from fct_metric
),

runs as (
    select * from dim_run
),

metrics as (
    select * from dim_metric
),

current_points as (
    select
        points.run_id,
        points.metric_id,
        points.step_axis,
        points.step,
        points.value,
        points.value_kind,
        case when points.value_kind = 'finite' then points.value end as finite_value
    from points
    where points.is_current
),

profiles as (
    select
        run_id,
        metric_id,
        min(step_axis) as step_axis,
        count(*) as point_count,
        count(*) filter (where value_kind = 'finite') as finite_count,
        count(*) filter (where value_kind = 'nan') as nan_count,
        count(*) filter (where value_kind = 'pos_inf') as pos_inf_count,
        count(*) filter (where value_kind = 'neg_inf') as neg_inf_count,
        count(*) filter (where value_kind = 'nonfinite_unknown') as nonfinite_unknown_count,
        count(*) filter (where value_kind = 'rewritten_suspect') as rewritten_suspect_count,
        min(step) as first_step,
        max(step) as last_step,
        min(step) filter (where value_kind <> 'finite') as first_nonfinite_step,
        min(finite_value) as low,
        max(finite_value) as high,
        quantile_cont(finite_value, [0.05, 0.25, 0.5, 0.75, 0.95]) as quantiles,
        count(*) filter (where finite_value = round(finite_value)) as whole_count,
        -- Values with few binary digits, such as 0.5, fit every store and tell nothing about it.
        count(*) filter (where finite_value * 1048576 <> round(finite_value * 1048576)) as fine_count,
        count(*) filter (
            where
            finite_value * 1048576 <> round(finite_value * 1048576)
            and try_cast(finite_value as float)::double = finite_value
        ) as float32_count,
        bit_xor(hash(step_axis, step, value, value_kind)) as series_hash
    from current_points
    group by run_id, metric_id
),

outside as (
    select
        current_points.run_id,
        current_points.metric_id,
        count(*) as outside_count,
        min(current_points.step) as first_outside_step
    from current_points
    inner join metrics on current_points.metric_id = metrics.metric_id
    where
        current_points.finite_value < metrics.domain_low - 1e-6 - 1e-5 * abs(metrics.domain_low)
        or current_points.finite_value > metrics.domain_high + 1e-6 + 1e-5 * abs(metrics.domain_high)
        or (metrics.domain_low_open and current_points.finite_value <= metrics.domain_low)
        or (metrics.domain_high_open and current_points.finite_value >= metrics.domain_high)
    group by current_points.run_id, current_points.metric_id
)

select
    profiles.run_id,  -- the run
    runs.run_name,  -- its name
    runs.migration,  -- its migration
    profiles.metric_id,  -- the metric
    metrics.metric,  -- its canonical name
    metrics.category,  -- its category
    profiles.step_axis,  -- which counter its steps count
    profiles.point_count,  -- current points
    profiles.finite_count,  -- current points with a finite value
    profiles.nan_count,  -- current points that are not a number
    profiles.pos_inf_count,  -- current points that are plus infinity
    profiles.neg_inf_count,  -- current points that are minus infinity
    profiles.nonfinite_unknown_count,  -- current points of which the log only says that they are not finite
    profiles.rewritten_suspect_count,  -- current points that the store may have written in place of another value
    profiles.first_step,  -- first step with a point
    profiles.last_step,  -- last step with a point
    profiles.first_nonfinite_step,  -- first step whose value is not finite
    profiles.low,  -- smallest finite value
    profiles.quantiles[1] as q05,  -- 5% quantile of the finite values
    profiles.quantiles[2] as q25,  -- lower quartile of the finite values
    profiles.quantiles[3] as median,  -- median of the finite values
    profiles.quantiles[4] as q75,  -- upper quartile of the finite values
    profiles.quantiles[5] as q95,  -- 95% quantile of the finite values
    profiles.high,  -- largest finite value
    profiles.whole_count,  -- finite values that are whole numbers
    profiles.fine_count,  -- finite values that need more than 20 binary digits after the point
    profiles.float32_count,  -- those of them that single precision holds exactly
    coalesce(outside.outside_count, 0) as outside_count,  -- finite values outside the domain of the metric
    outside.first_outside_step,  -- first step with such a value
    profiles.series_hash  -- hash of all steps and values: equal for two metrics that are equal at every step
from profiles
inner join runs on profiles.run_id = runs.run_id
inner join metrics on profiles.metric_id = metrics.metric_id
left join outside on profiles.run_id = outside.run_id and profiles.metric_id = outside.metric_id
