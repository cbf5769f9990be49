-- How far the runs of a pair are apart at their first common steps, by metric that has a practical limit or that nobody
-- described, and whether that is a mismatch of the start: beyond the limit and beyond the noise of the runs.
-- grain: pair_id, metric_id, step_axis
-- materialized: incremental(pair_id)
with deltas as (
    select
        pair_id,
        metric_id,
        step_axis,
        step,
        baseline_value,
        candidate_value,
        delta,
        floor_sigma,
        scaled_delta
    from mart_paired_delta
    where is_comparable
),

metrics as (
    select
        metric_id,
        metric,
        causal_tier,
        category,
        scale,
        practical_limit,
        practical_limit_kind
    from dim_metric
    where
        causal_tier < 8 and scale not in ('exact', 'constant', 'cumulative')
        and (practical_limit is not null or category = 'uncatalogued')
),

numbered as (
    select
        deltas.*,
        metrics.metric,
        metrics.causal_tier,
        metrics.scale,
        coalesce(metrics.practical_limit, 0.02) as practical_limit,
        coalesce(metrics.practical_limit_kind, 'relative') as practical_limit_kind,
        row_number() over along as i,
        deltas.baseline_value - lag(deltas.baseline_value) over along as baseline_jump,
        deltas.candidate_value - lag(deltas.candidate_value) over along as candidate_jump
    from deltas
    inner join metrics on deltas.metric_id = metrics.metric_id
    window along as (
        partition by deltas.pair_id, deltas.metric_id, deltas.step_axis
        order by deltas.step
    )
),

summed as (
    select
        pair_id,
        metric_id,
        step_axis,
        any_value(metric) as metric,
        any_value(causal_tier) as causal_tier,
        any_value(practical_limit) as practical_limit,
        any_value(practical_limit_kind) as practical_limit_kind,
        any_value(scale) as scale,
        count(*) as n,
        min(step) as first_step,
        arg_min(delta, step) as first_delta,
        arg_min(baseline_value, step) as first_baseline,
        arg_min(scaled_delta, step) as first_scaled_delta,
        max(floor_sigma) as floor_sigma,
        median(abs(delta)) filter (where i <= 3) as typical_start,
        1.4826 / sqrt(2.0) * sqrt(
            pow(median(abs(baseline_jump)), 2) + pow(median(abs(candidate_jump)), 2)
        ) as run_noise
    from numbered
    group by pair_id, metric_id, step_axis
)

select
    pair_id,  -- the pair
    metric_id,  -- the metric
    metric,  -- its canonical name
    causal_tier,  -- its place in the chain of causes
    step_axis,  -- which counter the step counts
    first_step,  -- first step at which the values of both runs are finite and sound
    first_delta,  -- difference there
    first_baseline,  -- value of the baseline there
    run_noise,  -- noise of the difference of two runs, from their steps
    practical_limit,  -- limit that was applied
    n >= 3
    and least(abs(first_delta), typical_start)
    > case when practical_limit_kind = 'absolute' then practical_limit else practical_limit * abs(first_baseline) end
    and least(abs(first_delta), typical_start) > 5.0 * run_noise
    and abs(first_scaled_delta) > 5.0 * coalesce(floor_sigma, 0.0) as is_material  -- a mismatch of the start
from summed
