"""The options of the source `auto_loader` (Databricks: *Auto Loader options*)."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, SecretStr, model_validator

from gem_bundle import Field
from gem_bundle.types import (
    ByteSize,
    DataPath,
    Interval,
    ReadSchema,
    SchemaHints,
    StringList,
    Timestamp,
    interval_length,
)
from gem_file.formats import RawOptions, csv, csv_json, csv_json_xml, format_option
from gem_file.paths import archive_is_read_again
from gem_file.reading import ReadingOptions

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

CloudFormat = Literal["csv", "json", "parquet", "orc", "text", "avro", "xml", "binaryFile"]
EvolutionMode = Literal[
    "addNewColumns", "addNewColumnsWithTypeWidening", "rescue", "failOnNewColumns", "none"
]
CleanSource = Annotated[
    Literal["OFF", "DELETE", "MOVE"],
    BeforeValidator(lambda value: value.upper() if isinstance(value, str) else value),
]
_WEEK = 7 * 24 * 60 * 60 * 1_000_000

evolving = partial(format_option, "csv json xml parquet avro")


def cloud(name: str, default: Any, description: str, **more: Any) -> Any:
    """Declare an option that Auto Loader has beside those of the format's reader, by its own name."""
    return Field(default, spark=f"cloudFiles.{name}", description=description, **more)


def set_up(name: str, description: str, **more: Any) -> Any:
    """Declare an option of notifications, which Auto Loader has no use for where it lists folders."""
    info = cloud(name, None, f"{description} With `use_notifications`.", advanced=True, **more)
    info.json_schema_extra["gem_bundle"]["notifications"] = True
    return info


class FormatOptions(ReadingOptions):
    """How files of a format are read, where Auto Loader takes more than the source `file`."""

    format: CloudFormat = cloud("format", ..., "The format of the files.")  # type: ignore[assignment]

    single_variant_column: str | None = csv_json_xml(
        "Read each record into one variant column of this name.", advanced=True
    )
    modified_before: Timestamp | None = Field(
        None, description="Read only files last changed before this time."
    )
    modified_after: Timestamp | None = Field(
        None, description="Read only files last changed after this time."
    )
    merge_schema: bool | None = format_option(
        "csv parquet orc avro", "Whether to merge the schemas of all files when inferring."
    )
    reader_case_sensitive: bool | None = evolving(
        "Whether a column whose name differs in case only is rescued (default: true)."
    )
    bad_records_path: DataPath | None = csv_json(
        "Where to write records that can't be read. Outside of the stream's transactions.", advanced=True
    )
    skip_rows: int | None = csv("The number of rows at the beginning of a file to skip.", ge=0)
    parser_case_sensitive: bool | None = csv("The older name of `reader_case_sensitive`.", advanced=True)


class AutoLoaderOptions(FormatOptions):
    """Options of the source `auto_loader`, from Databricks' *Auto Loader options*."""

    path: DataPath = Field(
        passed=False,
        description="The folder, or a glob of folders or files, as the workspace has it.",
        examples=["/Volumes/main/web/clicks", "s3://bucket/clicks/"],
        place=True,
    )
    schema: ReadSchema | None = Field(  # type: ignore[assignment]
        None,
        passed=False,
        description="The columns of the rows, all of them, columns of folder names included. Without it Auto "
        "Loader infers them, and keeps them in `schema_location`.",
        examples=["page string, at timestamp"],
    )
    schema_location: DataPath | None = cloud(
        "schemaLocation",
        None,
        "Where inferred columns and their changes are kept; of this stream only.",
        examples=["/Volumes/main/web/schemas/clicks"],
    )
    schema_hints: SchemaHints | None = cloud(
        "schemaHints",
        None,
        "Types of some of the inferred columns; also of fields in them, as `a.b int`. Of an array's elements "
        "the field is `element`, of a map `key` and `value`.",
        examples=["id long, tags map<string,string>", "user.born date, prices.element int"],
    )
    schema_evolution_mode: EvolutionMode | None = cloud(
        "schemaEvolutionMode",
        None,
        "What a new column does to the stream: it is added and the stream has to be started again "
        "(`addNewColumns`, default without `schema`), goes to the rescued data, fails the stream for good, "
        "or nothing (`none`, default with `schema`).",
    )
    infer_column_types: bool | None = cloud(
        "inferColumnTypes", None, "Whether to infer types (default: false: columns of text formats are text)."
    )
    rescued_data_column: str | None = Field(
        None,
        min_length=1,
        description="A text column for what doesn't fit the columns, as JSON. Inferred columns have one, "
        "`_rescued_data`.",
        examples=["_rescued_data"],
    )
    partition_columns: StringList | None = cloud(
        "partitionColumns",
        None,
        "The columns to take from names of folders (`day=2024-01-31`); an empty list for none.",
    )
    include_existing_files: bool | None = cloud(
        "includeExistingFiles",
        None,
        "Whether a first run reads the files that are there (default: true). Without effect later.",
    )
    allow_overwrites: bool | None = cloud(
        "allowOverwrites", None, "Whether a file that is written anew is read again (default: false)."
    )
    max_files_per_trigger: int | None = cloud(
        "maxFilesPerTrigger", None, "The most new files a micro-batch takes (default: 1000).", gt=0
    )
    max_bytes_per_trigger: ByteSize | None = cloud(
        "maxBytesPerTrigger",
        None,
        "The most bytes of new files a micro-batch takes, about.",
        gt=0,
        examples=["10g"],
    )
    max_file_age: Interval | None = cloud(
        "maxFileAge",
        None,
        "How long a file is remembered as read. Too short a time loses files, or reads them twice.",
        advanced=True,
        examples=["90 days"],
    )
    clean_source: CleanSource | None = cloud(
        "cleanSource", None, "What to do with files some time after they were read (default: `OFF`)."
    )
    clean_source_retention_duration: Interval | None = cloud(
        "cleanSource.retentionDuration",
        None,
        "How long after (default: 30 days); for `DELETE` more than 7 days.",
        examples=["14 days"],
    )
    clean_source_move_destination: DataPath | None = cloud(
        "cleanSource.moveDestination",
        None,
        "Where `clean_source: MOVE` puts files; outside of `path`, in the same bucket or container.",
    )
    use_strict_globber: bool | None = cloud(
        "useStrictGlobber", None, "Whether globs mean what they mean elsewhere in Spark.", advanced=True
    )
    validate_options: bool | None = cloud(
        "validateOptions", None, "Whether Auto Loader refuses options that it doesn't know.", advanced=True
    )
    use_incremental_listing: bool | Literal["auto"] | None = cloud(
        "useIncrementalListing",
        None,
        "Whether to list only what comes after the last file by name. Databricks advises against it.",
        advanced=True,
    )

    use_managed_file_events: bool | None = cloud(
        "useManagedFileEvents",
        None,
        "Whether to hear of new files from the file events of the external location that `path` lies in.",
    )
    list_on_start: bool | None = cloud(
        "listOnStart",
        None,
        "Whether a start lists all folders, and doesn't go on from the token in the checkpoint (default: "
        "false). For one start, with `validate_options: false`, after an error that refuses the token.",
        advanced=True,
    )
    use_notifications: bool | None = cloud(
        "useNotifications",
        None,
        "Whether to hear of new files from a queue of this stream's own, and not list folders.",
    )
    backfill_interval: Interval | None = cloud(
        "backfillInterval",
        None,
        "How often to look for files that no notification came for.",
        examples=["1 day"],
    )
    fetch_parallelism: int | None = set_up("fetchParallelism", "How many threads read the queue.", gt=0)
    path_rewrites: dict[str, str] | None = set_up(
        "pathRewrites", "Mount points in place of the beginnings of paths in notifications."
    )
    resource_tags: dict[str, str] | None = set_up(
        "resourceTag", "Tags of the queue and the subscription that are made.", passed=False
    )
    service_credential: str | None = Field(
        None,
        spark="databricks.serviceCredential",
        description="The name of the service credential with which the notifications are set up.",
    )
    region: str | None = set_up("region", "AWS: the bucket's region.")
    restrict_notification_setup_to_same_aws_account_id: bool | None = set_up(
        "restrictNotificationSetupToSameAWSAccountId", "AWS: whether other accounts' buckets are refused."
    )
    queue_url: str | None = set_up("queueUrl", "AWS: a queue that is there already.")
    aws_access_key: SecretStr | None = set_up("awsAccessKey", "AWS: the id of an access key.")
    aws_secret_key: SecretStr | None = set_up("awsSecretKey", "AWS: that key.")
    role_arn: str | None = set_up("roleArn", "AWS: a role to assume.")
    role_external_id: str | None = set_up("roleExternalId", "AWS: an identifier given with it.")
    role_session_name: str | None = set_up("roleSessionName", "AWS: the name of its session.")
    sts_endpoint: str | None = set_up("stsEndpoint", "AWS: where it is assumed.")
    resource_group: str | None = set_up("resourceGroup", "Azure: the storage account's resource group.")
    subscription_id: str | None = set_up("subscriptionId", "Azure: the group's subscription.")
    client_id: str | None = set_up("clientId", "Azure: the service principal.")
    client_secret: SecretStr | None = set_up("clientSecret", "Azure: its secret.")
    connection_string: SecretStr | None = set_up("connectionString", "Azure: that of the storage account.")
    tenant_id: str | None = set_up("tenantId", "Azure: the service principal's tenant.")
    queue_name: str | None = set_up("queueName", "Azure: a queue that is there already.")
    project_id: str | None = set_up("projectId", "Google: the bucket's project.")
    client: str | None = set_up("client", "Google: the client id of a service account.")
    client_email: str | None = set_up("clientEmail", "Google: its address.")
    private_key: SecretStr | None = set_up("privateKey", "Google: its key.")
    private_key_id: str | None = set_up("privateKeyId", "Google: that key's id.")
    subscription: str | None = set_up("subscription", "Google: a subscription that is there already.")
    spark_options: RawOptions = Field(
        {}, advanced=True, description="Further options of the reader, passed on as they are."
    )

    @model_validator(mode="after")
    def _columns(self) -> Self:
        if self.schema is not None and self.schema_hints is not None:
            raise ValueError(
                "give `schema` or `schema_hints`, not both: hints are for columns that are inferred"
            )
        if self.schema is not None and (self.schema_evolution_mode or "").startswith("add"):
            raise ValueError(
                f"`schema_evolution_mode: {self.schema_evolution_mode}` is for inferred columns: write "
                "yours as `schema_hints`, or leave `schema` out"
            )
        return self

    @model_validator(mode="after")
    def _cleaning(self) -> Self:
        moves, to = self.clean_source == "MOVE", self.clean_source_move_destination
        if moves != (to is not None):
            raise ValueError("`clean_source: MOVE` and `clean_source_move_destination` go together")
        if to is not None and archive_is_read_again(self.path, to):
            raise ValueError(
                f"files that are moved to `{to}` would be read again as part of `{self.path}`; move them "
                "out of what the path matches"
            )
        kept = self.clean_source_retention_duration
        if kept is not None and self.clean_source not in {"MOVE", "DELETE"}:
            raise ValueError("`clean_source_retention_duration` is for `clean_source: MOVE` or `DELETE`")
        if kept is not None and self.clean_source == "DELETE" and _microseconds(kept) <= _WEEK:
            raise ValueError("`clean_source: DELETE` needs a retention of more than 7 days")
        return self

    @model_validator(mode="after")
    def _notifications(self) -> Self:
        if self.use_managed_file_events:
            own = ("use_notifications", "backfill_interval", "use_incremental_listing")
            foreign = [f"`{name}`" for name in own if getattr(self, name)]
            if foreign:
                raise ValueError(f"`use_managed_file_events` goes without {' and '.join(foreign)}")
        given = [f"`{name}`" for name in _SET_UP if getattr(self, name) is not None]
        if given and not self.use_notifications:
            raise ValueError(f"{', '.join(given)} can't be used without `use_notifications: true`")
        if (self.aws_access_key is None) != (self.aws_secret_key is None):
            raise ValueError("`aws_access_key` and `aws_secret_key` go together")
        return self


def _microseconds(interval: str) -> int:
    months, microseconds = interval_length(interval)
    return months * 30 * 24 * 60 * 60 * 1_000_000 + microseconds


def _is_set_up(info: "FieldInfo") -> bool:
    extra = info.json_schema_extra
    kept = extra.get("gem_bundle") if isinstance(extra, dict) else None
    return isinstance(kept, dict) and "notifications" in kept


_SET_UP = tuple(name for name, info in AutoLoaderOptions.model_fields.items() if _is_set_up(info))
