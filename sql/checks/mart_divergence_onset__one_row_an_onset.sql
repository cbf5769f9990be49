-- A pair has one onset of each kind for a metric.
-- severity: error
-- blocking: true
select
    pair_id,
    metric,
    step_axis,
    onset_kind,
    count(*) as row_count
from mart_divergence_onset
group by pair_id, metric, step_axis, onset_kind
having count(*) > 1
