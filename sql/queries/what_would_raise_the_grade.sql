-- How well is each verdict founded, and what would raise its grade?
-- test: count(*) = 2 and bool_and(grade in ('A', 'B'))
-- test: bool_and(advice <> '')
select
    pairs.migration,
    pairs.candidate_run_name as candidate,
    verdicts.grade,
    verdicts.step_count,
    verdicts.baseline_replicates,
    verdicts.candidate_replicates,
    case
        when verdicts.grade = 'A' then 'nothing: replicates of both stacks stand behind it'
        when verdicts.step_count < 20 then 'log more steps: at least 20 that both runs have'
        when verdicts.baseline_replicates = 0 and verdicts.candidate_replicates = 0
            then 'repeat the baseline once on its own stack'
        when pairs.baseline_stack <> pairs.candidate_stack and verdicts.candidate_replicates = 0
            then 'repeat the run once on the candidate''s stack'
        when pairs.baseline_stack <> pairs.candidate_stack and verdicts.candidate_replicates = 1
            then 'one more repeat on the candidate''s stack'
        when verdicts.baseline_replicates < 2 then 'one more repeat on the baseline''s stack'
        else 'longer runs, or more repeats of either stack'
    end as advice
from mart_pair_verdict as verdicts
inner join dim_migration as pairs on verdicts.pair_id = pairs.pair_id
where pairs.pair_kind = 'migration'
order by verdicts.grade desc, pairs.migration asc, candidate asc
