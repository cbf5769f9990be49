-- A migration has one pair of a baseline and a candidate.
-- severity: error
-- blocking: true
select
    migration,
    baseline_run_name,
    candidate_run_name,
    count(*) as row_count
from dim_migration
group by migration, baseline_run_name, candidate_run_name
having count(*) > 1
