// Fails on known weaknesses, high or critical, in what is shipped. Reads the JSON of `npm audit` from standard input; a
// registry that offers no audit is said so and goes on, because it has found nothing and nothing is known of it.
let text = ''
for await (const part of process.stdin) text += part
let report
try {
  report = JSON.parse(text)
} catch {
  report = {}
}
const counts = report.metadata?.vulnerabilities
if (counts === undefined) {
  console.log(`No audit here: ${report.message ?? report.error?.summary ?? 'the registry does not offer one'}`)
  process.exit(0)
}
const found = Object.values(report.vulnerabilities ?? {}).filter(({ severity }) =>
  ['high', 'critical'].includes(severity),
)
for (const { name, severity, range } of found) console.error(`${severity}: ${name} ${range}`)
console.log(`${counts.high} high, ${counts.critical} critical, ${counts.total} in all`)
process.exit(counts.high + counts.critical > 0 ? 1 : 0)
