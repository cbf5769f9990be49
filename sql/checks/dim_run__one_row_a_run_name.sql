-- A migration has one run of a name.
-- severity: error
-- blocking: true
select
    migration,
    run_name,
    count(*) as row_count
from dim_run
group by migration, run_name
having count(*) > 1
