-- A run logs all metrics to look at first.
-- severity: warn
-- blocking: false
select
    migration,
    run_name,
    focus_metrics_logged,
    focus_metrics
from mart_run_health
where focus_metrics_logged < focus_metrics
order by focus_metrics_logged, run_name
