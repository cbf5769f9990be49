-- How well is each verdict founded, and what would raise its grade?
-- test: count(*) = 2 and bool_and(grade in ('A', 'B'))
-- test: bool_and(advice <> '')
with judged as (
    select
        pairs.migration,
        pairs.candidate_run_name as candidate,
        pairs.baseline_run_name as baseline,
        verdicts.grade,
        verdicts.step_count,
        verdicts.baseline_replicates,
        verdicts.candidate_replicates,
        verdicts.effective_size,
        pairs.baseline_stack <> pairs.candidate_stack and verdicts.candidate_replicates = 0 as lacks_candidate_side
    from mart_pair_verdict as verdicts
    inner join dim_migration as pairs on verdicts.pair_id = pairs.pair_id
    where pairs.pair_kind = 'migration'
),

-- The judged runs never serve, so the first equal run of a stack tells nothing yet and each further one a difference:
-- one difference is needed for B; two, and a run of either stack, for A.
needed as (
    select
        *,
        case
            when grade in ('A', 'D') then 0
            when effective_size = 0 and baseline_replicates = 0 and candidate_replicates = 0 then 2
            when effective_size = 0 then (baseline_replicates > 0)::integer
            when lacks_candidate_side then (baseline_replicates = 0)::integer
            else (baseline_replicates = 0)::integer + greatest(2 - effective_size, 0)
        end as more_baseline_runs,
        case
            when grade in ('A', 'D') then 0
            when effective_size = 0 then (baseline_replicates = 0 and candidate_replicates > 0)::integer
            when lacks_candidate_side then 1 + greatest(2 - effective_size, 0)
            else 0
        end as more_candidate_runs
    from judged
)

select
    migration,
    candidate,
    grade,
    step_count,
    baseline_replicates,
    candidate_replicates,
    more_baseline_runs,
    more_candidate_runs,
    case grade
        when 'A' then 'nothing: replicates of all its stacks stand behind it'
        when 'D' then 'log more steps: at least 20 that both runs have'
        else
            'run again: ' || concat_ws(
                ' and ',
                case when more_baseline_runs > 0 then more_baseline_runs || ' more on the baseline''s stack' end,
                case when more_candidate_runs > 0 then more_candidate_runs || ' more on the candidate''s stack' end
            )
    end as advice
from needed
order by grade desc, migration asc, candidate asc, baseline asc
