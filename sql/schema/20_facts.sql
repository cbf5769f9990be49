-- The facts of the star, and what the loader remembers.
create table if not exists fct_metric (
    run_id bigint not null,
    metric_id bigint not null,
    step_axis varchar not null,
    attempt integer not null,
    step bigint not null,
    write_no integer not null,
    value double,
    value_kind varchar not null,
    is_current boolean not null,
    raw_text varchar,
    metric_name varchar not null,
    source_file varchar not null,
    source_position bigint not null
);
comment on table fct_metric is
'One write of one metric. Grain: run, metric, step axis, attempt, step, write number.';
comment on column fct_metric.run_id is 'The run.';
comment on column fct_metric.metric_id is 'The metric.';
comment on column fct_metric.step_axis is 'Which counter the step counts.';
comment on column fct_metric.attempt is 'Attempt that wrote it, 1 for the first.';
comment on column fct_metric.step is 'The step.';
comment on column fct_metric.write_no is '1 for the first write of the step in its attempt, 2 for the next, ...';
comment on column fct_metric.value is 'The value; NaN and infinities as such, null where only "not finite" is known.';
comment on column fct_metric.value_kind is
'finite, nan, pos_inf, neg_inf, nonfinite_unknown or rewritten_suspect.';
comment on column fct_metric.is_current is 'The last write of the last attempt that logged the step.';
comment on column fct_metric.raw_text is 'Text of the log, where it was no finite number.';
comment on column fct_metric.metric_name is 'Name as written in the log.';
comment on column fct_metric.source_file is 'File of the log.';
comment on column fct_metric.source_position is 'Line (from 1) of a text file, byte offset of a binary one.';

create table if not exists fct_parse_issue (
    run_id bigint not null,
    source_file varchar not null,
    source_position bigint not null,
    reason varchar not null,
    snippet varchar,
    lost_points bigint
);
comment on table fct_parse_issue is
'A piece of a log that could not be read, in quarantine. Grain: run, source file, position, reason.';
comment on column fct_parse_issue.run_id is 'The run.';
comment on column fct_parse_issue.source_file is 'File of the log.';
comment on column fct_parse_issue.source_position is 'Line (from 1) of a text file, byte offset of a binary one.';
comment on column fct_parse_issue.reason is 'What is wrong with it.';
comment on column fct_parse_issue.snippet is 'Its first 200 characters.';
comment on column fct_parse_issue.lost_points is 'How many points were quarantined with it, where that is known.';

create table if not exists fct_rule_break (
    run_id bigint not null,
    step_axis varchar not null,
    attempt integer not null,
    step bigint not null,
    metric varchar not null,
    rule_id varchar not null,
    severity varchar not null,
    observed varchar not null,
    expected varchar not null
);
comment on table fct_rule_break is
'A rule of a step that does not hold. Grain: run, step axis, attempt, step, metric, rule.';
comment on column fct_rule_break.run_id is 'The run.';
comment on column fct_rule_break.step_axis is 'Which counter the step counts.';
comment on column fct_rule_break.attempt is 'Attempt that logged the step.';
comment on column fct_rule_break.step is 'The step.';
comment on column fct_rule_break.metric is 'Metric that breaks the rule, the first one named in it.';
comment on column fct_rule_break.rule_id is 'The rule.';
comment on column fct_rule_break.severity is 'error or warning, for the framework of the run.';
comment on column fct_rule_break.observed is 'What was seen.';
comment on column fct_rule_break.expected is 'What must hold.';

create table if not exists etl_model_state (
    model varchar not null,
    build_key varchar not null,
    fingerprint varchar not null,
    input_version varchar not null,
    built_at timestamp not null,
    primary key (model, build_key)
);
comment on table etl_model_state is 'What each model was last built from. Grain: model, key value.';
comment on column etl_model_state.model is 'The model.';
comment on column etl_model_state.build_key is 'Value of its incremental key; empty for a whole table.';
comment on column etl_model_state.fingerprint is 'Hash of its SQL and of all SQL that it reads from.';
comment on column etl_model_state.input_version is 'Hash of the data that it was built from.';
comment on column etl_model_state.built_at is 'When (UTC).';

create table if not exists etl_state (
    name varchar primary key,
    value varchar not null
);
comment on table etl_state is 'What the loader remembers between runs. Grain: name.';
comment on column etl_state.name is 'What is remembered.';
comment on column etl_state.value is 'Its value.';
