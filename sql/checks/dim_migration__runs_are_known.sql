-- Both runs of a pair are there, and belong to its migration.
-- severity: error
-- blocking: true
select
    pairs.pair_id,
    pairs.migration,
    pairs.baseline_run_name,
    pairs.candidate_run_name
from dim_migration as pairs
left join dim_run as baselines on pairs.baseline_run_id = baselines.run_id and pairs.migration = baselines.migration
left join dim_run as candidates on pairs.candidate_run_id = candidates.run_id and pairs.migration = candidates.migration
where baselines.run_id is null or candidates.run_id is null
