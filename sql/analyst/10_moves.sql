-- Moves that questions are made of, as table macros of the published file. For example:
-- select * from pair_curve('npu', 'time/step')
-- They read published tables alone; what models need is in sql/macros.

-- Both runs of a pair, step by step.
create or replace macro pair_curve(candidate, metric_name) as table
    select
        deltas.migration,
        pairs.baseline_run_name,
        pairs.candidate_run_name,
        deltas.step_axis,
        deltas.step,
        deltas.baseline_value,
        deltas.candidate_value,
        deltas.delta,
        deltas.standardised_delta,
        deltas.sigma
    from mart_paired_delta as deltas
    inner join dim_migration as pairs on deltas.pair_id = pairs.pair_id
    where
        pairs.candidate_run_name = candidate
        and pairs.pair_kind = 'migration'
        and deltas.metric = metric_name
    order by deltas.migration, pairs.baseline_run_name, deltas.step_axis, deltas.step;

-- Current points of a metric, of all runs or of those whose name is like a pattern.
create or replace macro run_curve(metric_name, run_pattern := '%') as table
    select
        runs.migration,
        runs.run_name,
        runs.role,
        points.step_axis,
        points.step,
        points.value,
        points.value_kind
    from fct_metric as points
    inner join dim_run as runs on points.run_id = runs.run_id
    inner join dim_metric as metrics on points.metric_id = metrics.metric_id
    where metrics.metric = metric_name and points.is_current and runs.run_name like run_pattern
    order by runs.migration, runs.run_name, points.step_axis, points.step;

-- Verdict and first drift of every migrated run, with names.
create or replace macro verdicts_by_name(migration_pattern := '%') as table
    select
        pairs.migration,
        pairs.candidate_run_name,
        pairs.baseline_run_name,
        verdicts.verdict,
        verdicts.grade,
        verdicts.first_metric,
        verdicts.first_stage,
        verdicts.first_onset_step,
        verdicts.last_common_step,
        verdicts.reason
    from mart_pair_verdict as verdicts
    inner join dim_migration as pairs on verdicts.pair_id = pairs.pair_id
    where pairs.pair_kind = 'migration' and pairs.migration like migration_pattern
    order by pairs.migration, pairs.candidate_run_name;

-- Runs with their component of one kind.
create or replace macro runs_on(kind) as table
    select
        runs.migration,
        runs.run_name,
        runs.role,
        component.component_name,
        component.component_version
    from dim_run as runs
    inner join bridge_run_component as bridge on runs.run_id = bridge.run_id
    inner join dim_component as component on bridge.component_id = component.component_id
    where component.component_kind = kind
    order by runs.migration, runs.run_name;
