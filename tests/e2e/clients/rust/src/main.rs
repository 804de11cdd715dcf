//! Calls each operation of the crate `spiceai`, and prints one line of JSON for each.

use serde_json::{Value, json};
use spiceai::arrow::array::{Array, AsArray, RecordBatch};
use spiceai::arrow::datatypes::{DataType, Int64Type};
use spiceai::{
    Client, ClientBuilder, DatasetRefreshRequest, QueryParameters, SearchRequest, StreamExt,
};
use std::error::Error;

type Answer = Result<Value, Box<dyn Error + Send + Sync>>;

fn print(name: &str, answer: Answer) {
    let line = match answer {
        Ok(result) => json!({"name": name, "result": result}),
        Err(error) => json!({"name": name, "error": error.to_string()}),
    };
    println!("{line}");
}

/// The rows of a batch, of whole numbers and texts.
fn rows(batch: &RecordBatch) -> Vec<Value> {
    let cell = |column: &dyn Array, row: usize| match column.data_type() {
        DataType::Int64 => json!(column.as_primitive::<Int64Type>().value(row)),
        DataType::Utf8View => json!(column.as_string_view().value(row)),
        DataType::Utf8 => json!(column.as_string::<i32>().value(row)),
        other => json!(format!("a column of {other}")),
    };
    (0..batch.num_rows())
        .map(|row| batch.columns().iter().map(|column| cell(column, row)).collect())
        .collect()
}

async fn sql(client: &Client, text: &str) -> Answer {
    let mut stream = client.sql(text).await?;
    let mut found = vec![];
    while let Some(batch) = stream.next().await {
        found.extend(rows(&batch?));
    }
    Ok(json!(found))
}

async fn bound(client: &Client, text: &str, values: QueryParameters) -> Answer {
    let mut stream = client.sql_with_bindings(text, values).await?;
    let mut found = vec![];
    while let Some(batch) = stream.next().await {
        found.extend(rows(&batch?));
    }
    Ok(json!(found))
}

async fn count(client: &Client, text: &str) -> Answer {
    let mut stream = client.sql(text).await?;
    let mut found = 0;
    while let Some(batch) = stream.next().await {
        found += batch?.num_rows();
    }
    Ok(json!(found))
}

async fn query(client: &Client, text: &str) -> Answer {
    let job = client.query(text).await?;
    let result = job.wait().await?;
    let found: Vec<Value> = job.results().await?.iter().flat_map(rows).collect();
    Ok(json!({"total": result.total_rows, "rows": found}))
}

async fn listed(client: &Client) -> Answer {
    let found = client.queries(None, None).await?;
    Ok(json!(found.queries.len()))
}

async fn cancelled(client: &Client) -> Answer {
    let job = client.query("SELECT 1 AS one").await?;
    job.wait().await?;
    let info = job.cancel().await?;
    Ok(json!(info.status.is_success()))
}

async fn searched(client: &Client) -> Answer {
    let request = SearchRequest::new("it's").with_datasets(["items"]).with_limit(1);
    let found = client.search(request).await?;
    let first = found.results.first().ok_or("nothing was found")?;
    Ok(json!({"dataset": first.dataset, "key": first.primary_key, "matches": first.matches}))
}

async fn refreshed(client: &Client) -> Answer {
    client.refresh_dataset("kept").await?;
    let all = DatasetRefreshRequest::new().with_refresh_sql("SELECT * FROM kept");
    client.refresh_dataset_with_options("kept", all).await?;
    Ok(json!(true))
}

async fn active(client: &Client) -> Answer {
    Ok(json!(client.active_queries().await?.total_count))
}

async fn states(client: &Client) -> Answer {
    let found = client.runtime_status().await?;
    let flight = found.iter().find(|each| each.name == "flight").ok_or("no flight")?;
    Ok(json!({"flight": flight.status.is_ready(), "ready": client.is_ready().await?}))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let given: Vec<String> = std::env::args().collect();
    let mut builder = ClientBuilder::new().http_url(&given[1]).flight_url(&given[2]);
    if !given[3].is_empty() {
        builder = builder.api_key(&given[3]);
    }
    let client = builder.build().await?;
    print("sql", sql(&client, "SELECT id, title FROM items ORDER BY id").await);
    let one = "SELECT title FROM items WHERE id = $1 AND title = $2";
    let values = QueryParameters::new().push(2_i64).push("it's");
    print("parameters", bound(&client, one, values).await);
    print("empty", sql(&client, "SELECT id FROM items WHERE id > 10").await);
    let many = "SELECT value FROM generate_series(1, 100000)";
    print("streamed", count(&client, many).await);
    let five = "SELECT value FROM generate_series(1, 5) ORDER BY value";
    print("query", query(&client, five).await);
    print("queries", listed(&client).await);
    print("cancelled", cancelled(&client).await);
    print("active", active(&client).await);
    print("search", searched(&client).await);
    print("refresh", refreshed(&client).await);
    print("states", states(&client).await);
    print("mistake", sql(&client, "SELECT nothing FROM items").await);
    Ok(())
}
