-- A metric of a pair that drifted, in the order of onset.
-- grain: pair_id, metric_id, step_axis
-- materialized: view
select
    drifts.pair_id, -- the pair
    drifts.migration, -- its migration
    pairs.migration || ': ' || pairs.candidate_run_name || ' against ' || pairs.baseline_run_name as pair, -- its name
    drifts.rank as drift_rank, -- 1 for the metric that drifted first
    drifts.metric_id, -- the metric
    drifts.metric, -- its name
    drifts.stage, -- stage that a first drift of the metric points to
    drifts.step_axis, -- which counter the steps count
    cast(drifts.onset_step as varchar) || ' (' || cast(drifts.onset_step_low as varchar) || ' to '
    || cast(drifts.onset_step_high as varchar) || ')' as onset, -- step from which on it is off, with its interval
    drifts.onset_step, -- step from which on it is off
    drifts.onset_step_low, -- lower end of the interval of that step
    drifts.onset_step_high, -- upper end of the interval of that step
    drifts.probability_first, -- probability that it was the first
    drifts.is_tied -- its interval overlaps that of the first
from mart_first_drift as drifts
inner join dim_migration as pairs on drifts.pair_id = pairs.pair_id
