-- The dimensions of the star. Grain first, in each table's comment.
create table if not exists dim_run (
    run_id bigint primary key,
    run_name varchar not null,
    migration varchar not null,
    role varchar not null,
    replicate_of varchar,
    stack varchar not null,
    framework varchar,
    recipe varchar,
    model varchar,
    dataset varchar,
    algorithm varchar,
    seed varchar,
    data_order_key varchar,
    precision varchar,
    config_hash varchar,
    status varchar not null,
    log_format varchar not null,
    log_precision varchar not null,
    source varchar not null,
    content_hash varchar not null,
    point_count bigint not null,
    attempt_count integer not null,
    first_step bigint,
    last_step bigint,
    issue_count bigint not null,
    loaded_at timestamp not null
);
comment on table dim_run is 'One training run. Grain: run.';
comment on column dim_run.run_id is 'Identifier, derived from migration and run name.';
comment on column dim_run.run_name is 'Name in the manifest, unique in its migration.';
comment on column dim_run.migration is 'The migration that the run belongs to.';
comment on column dim_run.role is 'baseline, candidate or replicate.';
comment on column dim_run.replicate_of is 'For a replicate: the run whose stack it repeats.';
comment on column dim_run.stack is
'Key of the replicate group: runs of one migration with equal keys ran on equal components.';
comment on column dim_run.framework is 'Training framework that wrote the log.';
comment on column dim_run.recipe is 'Model, data set and algorithm in one key: runs are comparable within it.';
comment on column dim_run.model is 'Model that was trained.';
comment on column dim_run.dataset is 'Data set of the prompts.';
comment on column dim_run.algorithm is 'Training algorithm, GRPO for example.';
comment on column dim_run.seed is 'Seed, as written in the manifest.';
comment on column dim_run.data_order_key is 'Key of the order of the prompts, where it is declared.';
comment on column dim_run.precision is 'Number format of the training.';
comment on column dim_run.config_hash is 'Hash of the run configuration, where the log holds it.';
comment on column dim_run.status is 'finished, running, crashed or unknown.';
comment on column dim_run.log_format is 'Reader that read the log.';
comment on column dim_run.log_precision is
'How precisely the log keeps values: float64, float32, decimal3, digits4, text. Of several logs, the coarsest.';
comment on column dim_run.source is 'Where the log lay, as the manifest names it.';
comment on column dim_run.content_hash is 'SHA-256 over the files of the log.';
comment on column dim_run.point_count is 'Number of points stored, every write counted.';
comment on column dim_run.attempt_count is 'Number of attempts: 1 plus the restarts.';
comment on column dim_run.first_step is 'Smallest step of any axis.';
comment on column dim_run.last_step is 'Largest step of any axis.';
comment on column dim_run.issue_count is 'Pieces of the log that could not be read.';
comment on column dim_run.loaded_at is 'When the run was last loaded (UTC).';

create table if not exists bridge_run_metric (
    run_id bigint not null,
    metric_id bigint not null,
    log_precision varchar not null,
    primary key (run_id, metric_id)
);
comment on table bridge_run_metric is
'Metrics that a run keeps more precisely than dim_run says, for its trackers differ. Grain: run, metric.';
comment on column bridge_run_metric.run_id is 'The run.';
comment on column bridge_run_metric.metric_id is 'The metric.';
comment on column bridge_run_metric.log_precision is 'How precisely the log that it is taken from keeps values.';

create table if not exists dim_migration (
    pair_id bigint primary key,
    migration varchar not null,
    pair_kind varchar not null,
    how_paired varchar not null,
    baseline_run_id bigint not null,
    baseline_run_name varchar not null,
    candidate_run_id bigint not null,
    candidate_run_name varchar not null,
    baseline_stack varchar not null,
    candidate_stack varchar not null,
    input_version varchar not null
);
comment on table dim_migration is 'One baseline run with one run judged against it. Grain: pair.';
comment on column dim_migration.pair_id is 'Identifier, derived from migration and both run names.';
comment on column dim_migration.migration is 'Name of the migration.';
comment on column dim_migration.pair_kind is
'migration (two stacks) or replicate (one stack, nothing should differ).';
comment on column dim_migration.how_paired is 'declared in a manifest, or inferred.';
comment on column dim_migration.baseline_run_id is 'Run that serves as baseline.';
comment on column dim_migration.baseline_run_name is 'Name of the baseline run.';
comment on column dim_migration.candidate_run_id is 'Run that is judged.';
comment on column dim_migration.candidate_run_name is 'Name of the candidate run.';
comment on column dim_migration.baseline_stack is 'Replicate group of the baseline run.';
comment on column dim_migration.candidate_stack is 'Replicate group of the candidate run.';
comment on column dim_migration.input_version is
'Hash of all that the pair is judged from; models by pair are rebuilt when it changes.';

create table if not exists dim_component (
    component_id bigint primary key,
    component_kind varchar not null,
    component_name varchar not null,
    component_version varchar
);
comment on table dim_component is 'A piece of hardware or software in one version. Grain: component.';
comment on column dim_component.component_id is 'Identifier, derived from kind, name and version.';
comment on column dim_component.component_kind is
'hardware, driver, compute_stack, framework, rollout_engine, attention_kernel, ... or switch.';
comment on column dim_component.component_name is 'Name, as the manifest gives it.';
comment on column dim_component.component_version is 'Version, where one is known.';

create table if not exists bridge_run_component (
    run_id bigint not null,
    component_id bigint not null,
    primary key (run_id, component_id)
);
comment on table bridge_run_component is 'Which components a run ran on. Grain: run, component.';
comment on column bridge_run_component.run_id is 'The run.';
comment on column bridge_run_component.component_id is 'The component.';

create table if not exists dim_category (
    category varchar primary key,
    ordinal integer not null,
    label_en varchar not null,
    label_zh varchar not null,
    causal_tier integer not null,
    tier_name varchar not null,
    stage varchar not null,
    description varchar not null
);
comment on table dim_category is 'A category of metrics. Grain: category.';
comment on column dim_category.category is 'Key of the category.';
comment on column dim_category.ordinal is 'Position in the catalogue.';
comment on column dim_category.label_en is 'English label.';
comment on column dim_category.label_zh is 'Chinese label.';
comment on column dim_category.causal_tier is 'Default place in the chain of causes: lower is nearer to the cause.';
comment on column dim_category.tier_name is 'Name of that place.';
comment on column dim_category.stage is
'Stage that a first drift here points to: data, rollout_or_weight_sync, training, reward, evaluation, queue or time.';
comment on column dim_category.description is 'What the metrics of the category have in common.';

create table if not exists dim_metric (
    metric_id bigint primary key,
    metric varchar not null,
    category varchar not null,
    stage varchar not null,
    causal_tier integer not null,
    label_en varchar not null,
    label_zh varchar not null,
    meaning varchar not null,
    advice varchar,
    unit varchar,
    better varchar not null,
    domain_low double,
    domain_high double,
    domain_low_open boolean not null,
    domain_high_open boolean not null,
    is_integer boolean not null,
    scale varchar not null,
    scale_constant double,
    parity_class varchar not null,
    duplicates_of varchar,
    aggregation varchar,
    observed_low double,
    observed_high double,
    provenance varchar not null,
    confidence varchar not null,
    focus_rank integer,
    practical_limit double,
    practical_limit_kind varchar,
    practical_limit_source varchar,
    is_catalogued boolean not null
);
comment on table dim_metric is 'A metric and how to read it. Grain: metric.';
comment on column dim_metric.metric_id is 'Identifier, derived from the canonical name.';
comment on column dim_metric.metric is 'Canonical name.';
comment on column dim_metric.category is 'Category, uncatalogued where nobody described the metric.';
comment on column dim_metric.stage is 'Stage that a first drift of this metric points to.';
comment on column dim_metric.causal_tier is 'Place in the chain of causes: lower is nearer to the cause; 9 is time.';
comment on column dim_metric.label_en is 'English label.';
comment on column dim_metric.label_zh is 'Chinese label.';
comment on column dim_metric.meaning is 'What the metric measures.';
comment on column dim_metric.advice is 'How to read it.';
comment on column dim_metric.unit is 'Unit: s, tokens, nats, ratio, ...';
comment on column dim_metric.better is 'up, down, target_0, target_1 or none.';
comment on column dim_metric.domain_low is 'Smallest possible value, where there is one.';
comment on column dim_metric.domain_high is 'Largest possible value, where there is one.';
comment on column dim_metric.domain_low_open is 'The smallest value itself is not possible.';
comment on column dim_metric.domain_high_open is 'The largest value itself is not possible.';
comment on column dim_metric.is_integer is 'Only whole numbers are possible.';
comment on column dim_metric.scale is
'Scale on which runs are compared: identity, log, logit, asinh, exact, cumulative or constant.';
comment on column dim_metric.scale_constant is
'Constant of the scale: the floor of log, the width of asinh, the offset of logit.';
comment on column dim_metric.parity_class is
'exact (must be equal between the runs of a pair), paired, schedule or hardware dependent.';
comment on column dim_metric.duplicates_of is 'Metric that this one repeats; it is left out of testing.';
comment on column dim_metric.aggregation is 'How the value was gathered over samples and workers.';
comment on column dim_metric.observed_low is 'Smallest value in the reference log of the catalogue.';
comment on column dim_metric.observed_high is 'Largest value in the reference log of the catalogue.';
comment on column dim_metric.provenance is 'Where the description comes from.';
comment on column dim_metric.confidence is 'How sure the description is: low, medium or high.';
comment on column dim_metric.focus_rank is 'Rank among the metrics to look at first; null for the others.';
comment on column dim_metric.practical_limit is 'Difference below which a drift has no practical weight.';
comment on column dim_metric.practical_limit_kind is
'absolute, or relative to the baseline; null where there is no limit.';
comment on column dim_metric.practical_limit_source is 'Public rule that the limit comes from.';
comment on column dim_metric.is_catalogued is 'The catalogue describes the metric.';

create table if not exists dim_metric_alias (
    framework varchar not null,
    name varchar not null,
    metric varchar not null,
    equivalence varchar not null,
    factor double not null,
    note varchar,
    primary key (framework, name, metric)
);
comment on table dim_metric_alias is 'A name under which a framework logs a metric. Grain: framework, name, metric.';
comment on column dim_metric_alias.framework is 'Framework, any for a spelling that every framework may use.';
comment on column dim_metric_alias.name is 'Name as written in the log.';
comment on column dim_metric_alias.metric is 'Canonical name.';
comment on column dim_metric_alias.equivalence is
'exact, scaled, approximate or different_population; only the first two are merged.';
comment on column dim_metric_alias.factor is 'Multiply a scaled value by this to get the canonical one; 1 otherwise.';
comment on column dim_metric_alias.note is 'What to know about the relation.';

create table if not exists dim_step (
    run_id bigint not null,
    step_axis varchar not null,
    attempt integer not null,
    step bigint not null,
    wall_time timestamp,
    elapsed_seconds double,
    is_current boolean not null,
    is_evaluated boolean not null
);
comment on table dim_step is 'A step that a run logged. Grain: run, step axis, attempt, step.';
comment on column dim_step.run_id is 'The run.';
comment on column dim_step.step_axis is 'Which counter the step counts.';
comment on column dim_step.attempt is 'Attempt that logged it, 1 for the first.';
comment on column dim_step.step is 'The step.';
comment on column dim_step.wall_time is 'When it was logged (UTC), where the log tells.';
comment on column dim_step.elapsed_seconds is 'Seconds since the first step of the attempt.';
comment on column dim_step.is_current is 'No later attempt logged the step again.';
comment on column dim_step.is_evaluated is 'An evaluation was logged at the step.';
