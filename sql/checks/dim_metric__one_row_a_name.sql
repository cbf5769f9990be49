-- A canonical name stands for one metric.
-- severity: error
-- blocking: true
select
    metric,
    count(*) as row_count
from dim_metric
group by metric
having count(*) > 1
