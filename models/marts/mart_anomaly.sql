-- Everything that is odd in the log of a run: broken rules of a step, and patterns over a whole run, each with the
-- cause where several signs together name one.
-- grain: run_id, step_axis, attempt, step, metric, rule_id
-- materialized: incremental(run_id)
with breaks as (
    select * from fct_rule_break
),

points as (
    select * from fct_metric
),

runs as (
    select * from dim_run
),

metrics as (
    select * from dim_metric
),

inputs as (
    select * from dim_metric_input
),

rules as (
    select * from dim_rule
),

contaminated as (
    select * from int_contaminated_step
),

profiles as (
    select * from mart_metric_profile
),

-- Runs whose store kept single precision: every value that could show it is a float32.
float32_runs as (
    select
        run_id,
        sum(float32_count) as float32_count,
        min(first_step) as first_step
    from profiles
    group by run_id
    having sum(float32_count) >= 20 and sum(float32_count) = sum(fine_count)
),

-- A value that is not finite or out of its domain, with what it is computed from at the same step.
diagnostics as (
    select
        breaks.run_id,
        breaks.step_axis,
        breaks.attempt,
        breaks.step,
        breaks.metric,
        inputs.input_metric,
        metrics.metric_id as input_metric_id
    from breaks
    inner join inputs on breaks.metric = inputs.metric
    inner join metrics on inputs.input_metric = metrics.metric
    where breaks.rule_id in ('finite', 'domain')
),

sound_inputs as (
    select
        diagnostics.run_id,
        diagnostics.step_axis,
        diagnostics.attempt,
        diagnostics.step,
        diagnostics.metric,
        bool_and(coalesce(points.value_kind = 'finite', false)) as is_finite,
        bool_or(other_breaks.rule_id is not null) as is_broken
    from diagnostics
    left join points
        on
            diagnostics.run_id = points.run_id
            and diagnostics.input_metric_id = points.metric_id
            and diagnostics.step_axis = points.step_axis
            and diagnostics.step = points.step
            and points.is_current
    left join breaks as other_breaks
        on
            diagnostics.run_id = other_breaks.run_id
            and diagnostics.step_axis = other_breaks.step_axis
            and diagnostics.step = other_breaks.step
            and diagnostics.input_metric = other_breaks.metric
            and other_breaks.severity = 'error'
    group by all
),

explained as (
    select
        breaks.run_id,
        breaks.step_axis,
        breaks.attempt,
        breaks.step,
        breaks.metric,
        breaks.rule_id,
        breaks.severity,
        breaks.observed,
        breaks.expected,
        case
            when contaminated.cause is not null then contaminated.cause
            when breaks.rule_id = 'counter_never_falls' then 'counter_reset_on_resume'
            when
                breaks.rule_id = 'finite'
                and (breaks.observed like '%nonfinite_unknown%' or breaks.observed like '%rewritten_suspect%')
                then 'nonfinite_rewritten'
            -- The reader knew better than the store, which held a finite number.
            when
                breaks.rule_id = 'finite'
                and isfinite(try_cast(regexp_extract(breaks.observed, '^(.*) \(', 1) as double))
                then 'nonfinite_rewritten'
            when
                breaks.rule_id = 'domain' and try_cast(breaks.observed as double) not between -1.7e308 and 1.7e308
                then 'nonfinite_rewritten'
            when sound_inputs.is_finite and not sound_inputs.is_broken then 'numeric_overflow'
            when
                breaks.rule_id = 'whole_number'
                and float32_runs.run_id is not null
                and abs(try_cast(breaks.observed as double)) >= 16777216
                then 'float32_store'
        end as cause,
        rules.meaning
    from breaks
    left join rules on breaks.rule_id = rules.rule_id
    left join metrics on breaks.metric = metrics.metric
    left join contaminated
        on
            breaks.run_id = contaminated.run_id
            and metrics.metric_id = contaminated.metric_id
            and breaks.step_axis = contaminated.step_axis
            and breaks.step = contaminated.step
    left join sound_inputs
        on
            breaks.run_id = sound_inputs.run_id
            and breaks.step_axis = sound_inputs.step_axis
            and breaks.attempt = sound_inputs.attempt
            and breaks.step = sound_inputs.step
            and breaks.metric = sound_inputs.metric
    left join float32_runs on breaks.run_id = float32_runs.run_id
),

single_precision as (
    select
        run_id,
        'step' as step_axis,
        1 as attempt,
        first_step as step,
        '(all metrics)' as metric,
        'float32_store' as rule_id,
        'info' as severity,
        'all ' || float32_count || ' values with long fractions are single precision' as observed,
        'double precision' as expected,
        'float32_store' as cause,
        'The store keeps 24 bits: differences below 6e-8 of a value can''t be seen, and whole numbers above '
        || '16777216 are rounded.' as meaning
    from float32_runs
),

constants as (
    select
        profiles.run_id,
        profiles.step_axis,
        1 as attempt,
        profiles.first_step as step,
        profiles.metric,
        'constant_metric' as rule_id,
        'info' as severity,
        profiles.low::varchar || ' at all of ' || profiles.point_count || ' steps' as observed,
        'values that move' as expected,
        'constant_metric' as cause,
        'The metric says nothing in this run.' as meaning
    from profiles
    inner join metrics on profiles.metric_id = metrics.metric_id
    where
        profiles.finite_count >= 8
        and profiles.finite_count = profiles.point_count
        and profiles.low = profiles.high
        and metrics.scale not in ('constant', 'exact')
),

duplicates as (
    select
        profiles.run_id,
        profiles.step_axis,
        1 as attempt,
        profiles.first_step as step,
        profiles.metric,
        'duplicate_metric' as rule_id,
        'info' as severity,
        'equal to ' || first_value(profiles.metric) over same_values
        || ' at all of ' || profiles.point_count || ' steps' as observed,
        'a series of its own' as expected,
        'duplicate_metric' as cause,
        'Two names for one series: counted twice, it would outweigh the others.' as meaning
    from profiles
    inner join metrics on profiles.metric_id = metrics.metric_id
    where profiles.point_count >= 8 and profiles.low < profiles.high
    -- The name that the catalogue knows best stands for the series.
    window
        same_values as (
            partition by profiles.run_id, profiles.series_hash, profiles.point_count, profiles.low, profiles.high
            order by
                metrics.observed_low is null, metrics.duplicates_of is not null, profiles.metric, profiles.step_axis
        )
    qualify row_number() over same_values > 1
),

-- Counters of metrics that are logged at nearly every step, on one axis, but run to different ends.
dense as (
    select
        run_id,
        step_axis,
        metric,
        first_step,
        last_step,
        min(last_step) over (partition by run_id, step_axis) as earliest_end,
        min(first_step) over (partition by run_id, step_axis) as earliest_start
    from profiles
    where point_count >= 6 and point_count >= 0.5 * (last_step - first_step + 1)
),

mixed_axes as (
    select
        run_id,
        step_axis,
        1 as attempt,
        earliest_end + 1 as step,
        metric,
        'step_axis_mixed' as rule_id,
        'warning' as severity,
        'steps to ' || last_step || ', where others end at ' || earliest_end as observed,
        'one counter on one axis' as expected,
        'step_axis_mixed' as cause,
        'Steps of rollouts and of optimizer updates lie on one axis: equal numbers are not equal times.' as meaning
    from dense
    where last_step - earliest_start >= 2 * (earliest_end - earliest_start + 1)
    qualify row_number() over (partition by run_id, step_axis order by last_step desc, metric asc) = 1
),

-- A counter that stands lower at the start of an attempt than at the end of the one before it.
counter_ends as (
    select
        points.run_id,
        points.step_axis,
        points.attempt,
        metrics.metric,
        min(points.step) as first_step,
        arg_min(points.value, (points.step, -points.write_no)) as first_value,
        arg_max(points.value, (points.step, points.write_no)) as last_value
    from points
    inner join metrics on points.metric_id = metrics.metric_id
    where metrics.scale = 'cumulative' and points.value_kind = 'finite'
    group by all
),

counter_steps as (
    select
        *,
        lag(last_value) over (partition by run_id, step_axis, metric order by attempt) as value_before
    from counter_ends
),

counter_resets as (
    select
        run_id,
        step_axis,
        attempt,
        first_step as step,
        metric,
        'counter_reset_on_resume' as rule_id,
        'info' as severity,
        first_value::varchar as observed,
        'at least ' || value_before || ', where the attempt before ended' as expected,
        'counter_reset_on_resume' as cause,
        'The counter was not restored when the run was started again; count from here on.' as meaning
    from counter_steps
    where first_value < value_before
),

anomalies as (
    select * from explained
    union all
    select * from single_precision
    union all
    select * from constants
    union all
    select * from duplicates
    union all
    select * from mixed_axes
    union all
    select * from counter_resets
)

select
    anomalies.run_id,  -- the run
    runs.run_name,  -- its name
    runs.migration,  -- its migration
    anomalies.step_axis,  -- which counter the step counts
    anomalies.attempt,  -- attempt that logged the step
    anomalies.step,  -- the step; the first one for what concerns a whole run
    anomalies.metric,  -- the metric
    anomalies.rule_id,  -- the rule that is broken, or the pattern that is met
    anomalies.severity,  -- error, warning, or info for what is worth knowing and no fault
    anomalies.observed,  -- what was seen
    anomalies.expected,  -- what must hold
    anomalies.cause,  -- what several signs together say it is; null where nothing is known
    anomalies.meaning  -- what it means
from anomalies
inner join runs on anomalies.run_id = runs.run_id
