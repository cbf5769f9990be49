-- A pair stands on one side of a comparison.
-- severity: error
-- blocking: true
select
    component_kind,
    arm,
    metric_group,
    onset_kind,
    pair_id,
    count(*) as row_count
from int_contrast_member
group by component_kind, arm, metric_group, onset_kind, pair_id
having count(*) > 1
