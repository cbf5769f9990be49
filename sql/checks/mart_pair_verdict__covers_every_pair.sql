-- Every pair has a verdict.
-- severity: error
-- blocking: true
select
    pairs.pair_id,
    pairs.baseline_run_name,
    pairs.candidate_run_name
from dim_migration as pairs
left join mart_pair_verdict as verdicts on pairs.pair_id = verdicts.pair_id
where verdicts.pair_id is null
