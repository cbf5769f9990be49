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
        candidate_kind,
        baseline_kind
    from mart_paired_delta
)

select
    pair_id,  -- the pair
    metric_id,  -- the metric
    step_axis,  -- which counter the step counts
    count(is_equal) as n,  -- steps that both runs logged
    min(step) filter (where is_equal is not null) as first_common_step,  -- first of them
    max(step) filter (where is_equal is not null) as last_common_step,  -- last of them
    min(step) filter (where not is_equal) as first_difference,  -- first step that is not equal; null where all are
    max(step) filter (where is_equal) as last_equal,  -- last step that is equal
    avg(case when is_equal then 0.0 when not is_equal then 1.0 end) as unequal_share,  -- share of steps that differ
    min(step) filter (where candidate_kind <> 'finite' and candidate_kind <> 'rewritten_suspect')
        as candidate_nonfinite,  -- first step at which the candidate is not finite
    min(step) filter (where baseline_kind <> 'finite' and baseline_kind <> 'rewritten_suspect')
        as baseline_nonfinite  -- first step at which the baseline is not finite
from deltas
group by pair_id, metric_id, step_axis
