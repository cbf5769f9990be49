-- The first step at which the runs of a pair are not equal at the precision of their logs, by metric.
-- grain: pair_id, metric_id, step_axis
-- materialized: incremental(pair_id)
with deltas as (
    select
        pair_id,
        metric_id,
        step_axis,
        step,
        is_equal,
        is_comparable,
        candidate_kind,
        baseline_kind
    from mart_paired_delta
)

select
    pair_id,  -- the pair
    metric_id,  -- the metric
    step_axis,  -- which counter the step counts
    count(is_equal) as n,  -- steps that both runs logged
    count(*) filter (where is_comparable) as comparable_steps,  -- those at which both values are finite and sound
    min(step) filter (where is_comparable) as first_common_step,  -- first step at which they are
    max(step) filter (where is_comparable) as last_common_step,  -- last step at which they are
    min(step) filter (where not is_equal) as first_difference,  -- first step that is not equal; null where all are
    min(step) filter (where candidate_kind <> 'finite' and candidate_kind <> 'rewritten_suspect')
        as candidate_nonfinite,  -- first step at which the candidate is not finite
    min(step) filter (where baseline_kind <> 'finite' and baseline_kind <> 'rewritten_suspect')
        as baseline_nonfinite  -- first step at which the baseline is not finite
from deltas
group by pair_id, metric_id, step_axis
