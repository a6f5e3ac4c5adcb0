/** What the vendors' APIs answer here: no address is listed, and every card is issued. Anything else is 404. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { z } from 'zod'

export async function startVendors() {
  let tokens = 0
  const server = createServer((request, response) => {
    const path = `${request.method} ${request.url}`
    const answers = [
      [/^GET \/api\/v1\/address\/0x[0-9a-f]{40}$/i, () => ({ identifications: [] })],
      [
        /^POST \/v1\/cards$/,
        () => {
          tokens += 1
          return { token: `token-${tokens}`, last_four: '4242', exp_month: '01', exp_year: '2031' }
        },
      ],
    ] as const
    const answer = answers.find(([pattern]) => pattern.test(path))?.[1]
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(answer?.() ?? {}))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = z.object({ port: z.int() }).parse(server.address())
  return {
    url: `http://127.0.0.1:${port}`,
    lastToken: () => `token-${tokens}`,
    close: () => server.close().closeAllConnections(),
  }
}
