// Runs operations of the npm package @spiceai/spice, and prints what came of each as a line of JSON.
// Arguments: the package's folder, HTTP URL, Flight address, key, what transport to use, and the
// certificate of the server, if it has one.
const [folder, httpUrl, flightUrl, apiKey, transport, certificate] = process.argv.slice(2);
const { SpiceClient } = require(folder);

const plain = (value) =>
  typeof value === 'bigint' ? Number(value)
  : value instanceof Uint8Array ? Buffer.from(value).toString('hex')
  : value;
const rows = (table) =>
  table.toArray().map((row) =>
    Object.fromEntries(Object.entries(row.toJSON()).map(([name, value]) => [name, plain(value)])));

const client = new SpiceClient({
  httpUrl, flightUrl, apiKey: apiKey || undefined, logging: false,
  flightTlsEnabled: Boolean(certificate), tlsRootCertFile: certificate || undefined,
  flightOnly: transport === 'flight', httpOnly: transport === 'http',
});

const operations = {
  sql: async () => rows(await client.sql('SELECT id, title FROM items ORDER BY id')),
  types: async () => rows(await client.sql(
    "SELECT true AS b, 1.5 AS d, 'é' AS s, CAST(7 AS BIGINT) AS i, NULL AS n")),
  parameters: async () => rows(await client.sql(
    'SELECT id FROM items WHERE id > $1 AND title = $2', { parameters: [1, "it's"] })),
  named: async () => rows(await client.sql(
    'SELECT id FROM items WHERE id = $id', { parameters: { id: 1 } })),
  typed: async () => rows(await client.sql(
    "SELECT sum(CASE WHEN title = $1 THEN $2 ELSE $3 END) AS n, max($4 || $5) AS s FROM items",
    { parameters: ['one', 2, 1, 'a', 'b'] })),
  empty: async () => rows(await client.sql('SELECT id FROM items WHERE false')),
  streamed: async () => {
    let count = 0;
    await client.sql('SELECT value FROM generate_series(1, 100000)', (chunk) => {
      count += chunk.numRows;
    });
    return count;
  },
  sqlJson: async () => {
    const found = await client.sqlJson('SELECT id FROM items ORDER BY id');
    return { row_count: found.row_count, data: found.data, types: found.schema.fields.map((f) => f.data_type) };
  },
  mistake: () => client.sql('SELECT nothing FROM items'),
  query: async () => {
    const query = await client.query('SELECT value FROM generate_series(1, 5) ORDER BY value');
    const found = await query.results();
    return found.toArray ? rows(found) : found;
  },
  failing: async () => {
    const query = await client.query('SELECT 1 / (value - 3) FROM generate_series(1, 5)');
    return query.results();
  },
  listQueries: async () => {
    const found = await client.listQueries({ limit: 1 });
    return (found.queries ?? found).length;
  },
  listActiveQueries: async () => (await client.listActiveQueries()).length,
  cancelActiveQuery: () => client.cancelActiveQuery('00000000-0000-0000-0000-000000000000'),
  search: async () => {
    const found = await client.search('it', {
      datasets: ['items'], limit: 1, where: 'id > 1', additional_columns: ['title'] });
    const [best] = found.results;
    return { count: found.results.length, key: best.primary_key, dataset: best.dataset,
             matches: best.matches, isScored: best.score > 0, duration: typeof found.duration_ms };
  },
  keywords: async () => (await client.search('nothing', {
    datasets: ['items'], keywords: ['one'] })).results.map((each) => each.primary_key.id),
  refresh: async () => typeof (await client.refreshAcceleration('kept')).message,
  isSpiceHealthy: () => client.isSpiceHealthy(),
  isSpiceReady: () => client.isSpiceReady(),
};

(async () => {
  client.setMaxRetries(0);
  for (const [name, run] of Object.entries(operations)) {
    try {
      console.log(JSON.stringify({ name, result: await run() }));
    } catch (error) {
      console.log(JSON.stringify({ name, error: String(error.message ?? error) }));
    }
  }
  process.exit(0);
})();
