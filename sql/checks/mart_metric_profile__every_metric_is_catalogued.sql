-- Every metric that a run logs is described in the catalogue.
-- severity: warn
-- blocking: false
select
    profiles.metric,
    count(*) as run_count,
    min(profiles.run_name) as first_run
from mart_metric_profile as profiles
inner join dim_metric as metrics on profiles.metric_id = metrics.metric_id
where not metrics.is_catalogued
group by profiles.metric
order by run_count desc, profiles.metric asc
