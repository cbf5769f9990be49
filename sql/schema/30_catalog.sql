-- What the catalogue says beyond the dimensions: the rules of a step, and what metrics are computed from.
create table if not exists dim_metric_input (
    metric varchar not null,
    input_metric varchar not null,
    primary key (metric, input_metric)
);
comment on table dim_metric_input is
'A metric of the same step that another one is computed from. Grain: metric, input metric.';
comment on column dim_metric_input.metric is 'The computed metric.';
comment on column dim_metric_input.input_metric is 'A metric that goes into it.';

create table if not exists dim_rule (
    rule_id varchar primary key,
    kind varchar not null,
    metric varchar,
    expression varchar,
    severity varchar not null,
    severity_by_framework varchar,
    absolute_tolerance double not null,
    relative_tolerance double not null,
    origin varchar not null,
    meaning varchar not null
);
comment on table dim_rule is 'What must hold within a step of a run. Grain: rule.';
comment on column dim_rule.rule_id is 'Name of the rule.';
comment on column dim_rule.kind is
'expression, or a check whose bounds are in dim_metric: finite, domain, integer, monotone, steady.';
comment on column dim_rule.metric is 'Metric that a break is charged to, or the family of them.';
comment on column dim_rule.expression is 'What must hold, as SQL over metric names.';
comment on column dim_rule.severity is 'error, warning or off, for frameworks that are not named.';
comment on column dim_rule.severity_by_framework is 'Severity for the frameworks that differ.';
comment on column dim_rule.absolute_tolerance is 'Allowed miss, in the unit of the compared values.';
comment on column dim_rule.relative_tolerance is 'Allowed miss, relative to the compared values.';
comment on column dim_rule.origin is 'How the rule is known: code, definition or inferred from a log.';
comment on column dim_rule.meaning is 'What a break means.';

create table if not exists dim_contamination (
    cause varchar not null,
    metric varchar not null,
    reason varchar not null,
    primary key (cause, metric)
);
comment on table dim_contamination is
'A metric that leaves the drift tests in a step that a cause has spoiled. Grain: cause, metric.';
comment on column dim_contamination.cause is 'Cause, as in mart_anomaly.';
comment on column dim_contamination.metric is 'The spoiled metric.';
comment on column dim_contamination.reason is 'How it is spoiled.';
