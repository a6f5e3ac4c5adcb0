/** `npm run fuzz`: a campaign against a gateway of its own, whose books must balance at the end. */
import { parseArgs } from 'node:util'
import { runFuzz } from './fuzz.ts'
import { findingText, seenText } from './report.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(process.pid * 7_919) },
    requests: { type: 'string', default: '20000' },
    calls: { type: 'string', default: '5000' },
    only: { type: 'string' },
    minutes: { type: 'string', default: '20' },
    seen: { type: 'boolean', default: false },
  },
})
const print = (text: string) => process.stdout.write(`${text}\n`)
const isShown = process.stderr.isTTY && process.env.NO_COLOR === undefined
const size = {
  seed: Number(values.seed),
  requests: Number(values.requests),
  calls: Number(values.calls),
  only: values.only ?? null,
  withinMs: Number(values.minutes) * 60_000,
}
print(`seed ${size.seed}: ${size.requests} requests, ${size.calls} tool calls`)
const startedAt = performance.now()
const { outcome, books, origin, memoryMb } = await runFuzz(size, (done, of, findings) => {
  const line = `${done}/${of} sent, ${findings} findings`
  process.stderr.write(isShown ? `\r\u001b[K${line}` : `${line}\n`)
})
if (isShown) process.stderr.write('\n')
if (values.seen) print(seenText(outcome))
for (const finding of outcome.findings) print(`\n${findingText(finding, origin)}`)
for (const wrong of books) print(`\nafter all that: ${wrong}`)
const seconds = Math.round((performance.now() - startedAt) / 1000)
print(
  `\n${outcome.sent} requests and ${outcome.called} tool calls in ${seconds} s; slowest answer ${Math.round(outcome.slowestMs)} ms; memory ${memoryMb.before} → ${memoryMb.after} MB; ${outcome.findings.length + books.length} findings`,
)
const isComplete = outcome.sent >= size.requests * 0.99 && outcome.called >= size.calls * 0.99
if (!isComplete) print('Time was up before all was sent.')
process.exitCode = outcome.findings.length + books.length === 0 && (isComplete || size.only !== null) ? 0 : 1
