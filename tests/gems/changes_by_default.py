"""Options of the built-in gems for which it is meant that their gem's default says what another value does.

Whoever adds an option says it with `Field(change=…)`, or in the gem's `change`; or he names the option here, when he
has thought about it and finds that the default is right.
"""

from __future__ import annotations

_NAMES = {
    ("source", "auto_loader"): """
        schema path format header sep quote escape char_to_escape_quote_escaping null_value empty_value
        ignore_leading_white_space ignore_trailing_white_space date_format timestamp_format
        timestamp_ntz_format time_format time_zone locale encoding line_sep avro_schema avro_schema_url
        positional_field_matching row_tag attribute_prefix value_tag path_glob_filter recursive_file_lookup
        base_path modified_before modified_after mode column_name_of_corrupt_record multi_line
        sampling_ratio enable_date_time_parsing_fallback single_variant_column comment enforce_schema
        prefer_date nan_value positive_inf negative_inf max_columns max_chars_per_column
        unescaped_quote_handling input_buffer_size column_pruning primitives_as_string prefers_decimal
        infer_timestamp drop_field_if_all_null allow_comments allow_unquoted_field_names allow_single_quotes
        allow_numeric_leading_zeros allow_non_numeric_numbers allow_backslash_escaping_any_character
        allow_unquoted_control_chars exclude_attribute ignore_surrounding_spaces row_validation_xsd_path
        ignore_namespace wildcard_col_name wholetext merge_schema datetime_rebase_mode int96_rebase_mode
        enable_stable_identifiers_for_union_type stable_identifier_prefix_for_union_type
        recursive_field_max_depth reader_case_sensitive bad_records_path skip_rows parser_case_sensitive
        schema_location schema_hints schema_evolution_mode infer_column_types rescued_data_column
        partition_columns include_existing_files allow_overwrites max_files_per_trigger
        max_bytes_per_trigger max_file_age clean_source clean_source_retention_duration
        clean_source_move_destination use_strict_globber validate_options use_incremental_listing
        use_managed_file_events list_on_start use_notifications backfill_interval fetch_parallelism
        path_rewrites resource_tags service_credential region
        restrict_notification_setup_to_same_aws_account_id queue_url aws_access_key aws_secret_key role_arn
        role_external_id role_session_name sts_endpoint resource_group subscription_id client_id
        client_secret connection_string tenant_id queue_name project_id client client_email private_key
        private_key_id subscription spark_options
    """,
    ("source", "delta"): """
        read_change_feed skip_change_commits ignore_deletes ignore_changes exclude_regex
        schema_tracking_location streaming_source_tracking_id allow_source_column_rename
        allow_source_column_drop allow_source_column_type_change spark_options
    """,
    ("source", "file"): """
        schema format header sep quote escape char_to_escape_quote_escaping null_value empty_value
        ignore_leading_white_space ignore_trailing_white_space date_format timestamp_format
        timestamp_ntz_format time_format time_zone locale encoding line_sep avro_schema avro_schema_url
        positional_field_matching row_tag attribute_prefix value_tag base_path modified_before
        modified_after mode column_name_of_corrupt_record multi_line sampling_ratio
        enable_date_time_parsing_fallback single_variant_column comment enforce_schema prefer_date nan_value
        positive_inf negative_inf max_columns max_chars_per_column unescaped_quote_handling
        input_buffer_size column_pruning primitives_as_string prefers_decimal infer_timestamp
        drop_field_if_all_null allow_comments allow_unquoted_field_names allow_single_quotes
        allow_numeric_leading_zeros allow_non_numeric_numbers allow_backslash_escaping_any_character
        allow_unquoted_control_chars exclude_attribute ignore_surrounding_spaces row_validation_xsd_path
        ignore_namespace wildcard_col_name wholetext merge_schema datetime_rebase_mode int96_rebase_mode
        enable_stable_identifiers_for_union_type stable_identifier_prefix_for_union_type
        recursive_field_max_depth infer_schema rejects use_legacy_xml_parser spark_options
    """,
    ("source", "generate"): """columns rows rows_per_batch seed""",
    ("source", "jdbc"): """
        url table query increasing predicates custom_schema prefer_timestamp_ntz
        spark_options
    """,
    ("source", "kafka"): """
        security_protocol sasl_mechanism sasl_username sasl_password sasl_jaas_config
        sasl_kerberos_service_name ssl_truststore_location ssl_truststore_password ssl_truststore_type
        ssl_truststore_certificates ssl_keystore_location ssl_keystore_password ssl_keystore_type
        ssl_keystore_certificate_chain ssl_keystore_key ssl_key_password
        ssl_endpoint_identification_algorithm client_id request_timeout
        starting_offsets_by_timestamp_strategy ending_offsets ending_timestamp ending_offsets_by_timestamp
        max_offsets_per_trigger min_offsets_per_trigger max_trigger_delay fail_on_data_loss min_partitions
        max_records_per_partition group_id_prefix group_id kafka_consumer_poll_timeout_ms
        fetch_offset_num_retries fetch_offset_retry_interval_ms
    """,
    ("source", "rate"): """rows_per_second ramp_up_time""",
    ("source", "rate_micro_batch"): """rows_per_batch start_timestamp advance_millis_per_batch""",
    ("source", "rows"): """schema rows""",
    ("source", "socket"): """host port include_timestamp""",
    ("source", "table"): """spark_options""",
    ("transform", "compare"): """on columns tolerance matched""",
    ("transform", "from_avro"): """
        schema column schema_file writer_schema writer_schema_file schema_id keep mode rejects subject
        subject_strategy topic part record
    """,
    ("transform", "from_debezium"): """schema column source keep rejects""",
    ("transform", "from_json"): """
        schema column keep mode rejects duplicate_names column_name_of_corrupt_record timestamp_format
        timestamp_ntz_format date_format time_zone locale enable_date_time_parsing_fallback allow_comments
        allow_unquoted_field_names allow_single_quotes allow_numeric_leading_zeros
        allow_backslash_escaping_any_character allow_unquoted_control_chars allow_non_numeric_numbers
        spark_options
    """,
    ("transform", "fuzzy_match"): """threshold pairs""",
    ("transform", "lookup"): """columns on range prefer missing""",
    ("transform", "python"): """function arguments""",
    (
        "transform",
        "rest_enrich",
    ): """schema url method body column headers api_key_header cache rejects unreachable""",
    (
        "transform",
        "to_avro",
    ): """schema register columns column keep schema_file schema_id subject subject_strategy topic part""",
    ("transform", "to_json"): """
        columns column keep ignore_null_fields pretty timestamp_format timestamp_ntz_format date_format
        time_zone locale write_non_ascii_character_as_code_point spark_options
    """,
    ("transform", "window_function"): """columns partition_by order_by frame""",
    ("target", "console"): """num_rows truncate""",
    ("target", "delta"): """spark_options""",
    ("target", "file"): """
        ignore_leading_white_space ignore_trailing_white_space time_zone locale avro_schema
        avro_schema_url positional_field_matching escape_quotes quote_all extension ignore_null_fields
        write_non_ascii_character_as_code_point record_name record_namespace root_tag declaration
        array_element_name spark_options
    """,
    ("target", "jdbc"): """
        user password driver jar batch_size num_partitions query_timeout create_table_options
        create_table_column_types
    """,
    ("target", "kafka"): """
        security_protocol sasl_mechanism sasl_username sasl_password sasl_jaas_config
        sasl_kerberos_service_name ssl_truststore_location ssl_truststore_password ssl_truststore_type
        ssl_truststore_certificates ssl_keystore_location ssl_keystore_password ssl_keystore_type
        ssl_keystore_certificate_chain ssl_keystore_key ssl_key_password
        ssl_endpoint_identification_algorithm client_id request_timeout acks compression_type
        enable_idempotence batch_size linger_ms max_request_size buffer_memory delivery_timeout max_block
        async_progress_tracking_checkpoint_interval_ms
    """,
    ("target", "table"): """save_mode""",
}

BY_DEFAULT = {gem: frozenset(names.split()) for gem, names in _NAMES.items()}
"""By kind and name of the gem."""
