-- Baseline and candidate value side by side, for each step that at least one of the two runs logged.
-- Everything about pairs reads this table, so the two runs are brought together once.
-- grain: pair_id, metric_id, step_axis, step
-- materialized: incremental(pair_id)
with pairs as (
    select
        pair_id,
        migration,
        pair_kind,
        baseline_run_id,
        candidate_run_id
    from dim_migration
),

points as (
    select
        run_id,
        metric_id,
        step_axis,
        step,
        value,
        value_kind
    from fct_metric
    where is_current
),

baseline as (
    select
        pairs.pair_id,
        points.metric_id,
        points.step_axis,
        points.step,
        points.value,
        points.value_kind
    from pairs
    inner join points on pairs.baseline_run_id = points.run_id
),

candidate as (
    select
        pairs.pair_id,
        points.metric_id,
        points.step_axis,
        points.step,
        points.value,
        points.value_kind
    from pairs
    inner join points on pairs.candidate_run_id = points.run_id
),

joined as (
    select
        coalesce(baseline.pair_id, candidate.pair_id) as pair_id,
        coalesce(baseline.metric_id, candidate.metric_id) as metric_id,
        coalesce(baseline.step_axis, candidate.step_axis) as step_axis,
        coalesce(baseline.step, candidate.step) as step,
        baseline.value as baseline_value,
        candidate.value as candidate_value,
        baseline.value_kind as baseline_kind,
        candidate.value_kind as candidate_kind
    from baseline
    full outer join candidate
        on
            baseline.pair_id = candidate.pair_id
            and baseline.metric_id = candidate.metric_id
            and baseline.step_axis = candidate.step_axis
            and baseline.step = candidate.step
)

select
    joined.pair_id,  -- the pair
    pairs.migration,  -- its migration
    pairs.pair_kind,  -- migration or replicate
    joined.metric_id,  -- the metric
    joined.step_axis,  -- which counter the step counts
    joined.step,  -- the step
    joined.baseline_value,  -- value of the baseline; null where it logged none, or only "not finite" is known
    joined.candidate_value,  -- value of the candidate, likewise
    joined.baseline_kind,  -- kind of the baseline's value; null where it logged none
    joined.candidate_kind  -- kind of the candidate's value; null where it logged none
from joined
inner join pairs on joined.pair_id = pairs.pair_id
