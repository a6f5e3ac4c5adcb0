/** The text report of a campaign. */
import type { Finding, Outcome } from './campaign.ts'

/** A finding with the command that reproduces it. */
export function findingText(
  { what, where, shot, answerText: answer, times }: Finding,
  origin: string,
): string {
  const headers = Object.entries(shot.headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`)
  const body = shot.body === null ? [] : [`--data-raw ${quote(shot.body.slice(0, 2_000))}`]
  const credential =
    shot.caller === 'anonymous' ? [] : [`-H "authorization: Bearer $TOKEN"   # as: ${shot.caller}`]
  const command = [
    'curl --path-as-is -i',
    `-X ${shot.method}`,
    ...headers,
    ...body,
    quote(`${origin}${shot.target}`),
    ...credential,
  ]
  return [`${where}: ${what} (${times} times)`, `  ${command.join(' ')}`, `  answered: ${answer}`].join('\n')
}

/** Status counts per route, one a line. */
export function seenText({ seen }: Outcome): string {
  return [...seen]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([where, counts]) => {
      const statusCounts = [...counts]
        .sort((one, other) => other[1] - one[1])
        .map(([outcome, count]) => `${outcome} ×${count}`)
      return `  ${where}: ${statusCounts.join(', ')}`
    })
    .join('\n')
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
