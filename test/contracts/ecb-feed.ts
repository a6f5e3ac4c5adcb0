/** The ECB's daily feed on a local HTTP server: the document's real shape, with day and rates set by a test. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { published as sandboxPublication } from '../../src/providers/rates/sandbox.ts'

/** The publication of 28 June 2024, which states no rate of the euro itself. */
const { EUR: _euro, ...rates } = sandboxPublication
export const published: Readonly<Record<string, string>> = rates

/** Builds the document. @param day such as `2024-06-28`. */
export function ecbDocument(day: string, rates: Readonly<Record<string, string>> = published): string {
  const cubes = Object.entries(rates).map(([code, rate]) => `\t\t\t<Cube currency='${code}' rate='${rate}'/>`)
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">',
    '\t<gesmes:subject>Reference rates</gesmes:subject>',
    '\t<gesmes:Sender>',
    '\t\t<gesmes:name>European Central Bank</gesmes:name>',
    '\t</gesmes:Sender>',
    '\t<Cube>',
    `\t\t<Cube time='${day}'>`,
    ...cubes,
    '\t\t</Cube>',
    '\t</Cube>',
    '</gesmes:Envelope>',
  ].join('\n')
}

/** A feed with a settable answer. @property asked number of requests. */
export interface Feed {
  readonly url: string
  readonly requestCount: () => number
  answer: { status: number; body: string } | 'nothing'
  close(): Promise<void>
}

/** Serves a feed on an ephemeral port. */
export async function startFeed(body: string): Promise<Feed> {
  let asked = 0
  const server = createServer((_request, response) => {
    asked += 1
    if (feed.answer === 'nothing') return
    response.writeHead(feed.answer.status, { 'content-type': 'text/xml' }).end(feed.answer.body)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  // A listening server has an address object with a port.
  const { port } = server.address() as AddressInfo
  const feed: Feed = {
    url: `http://127.0.0.1:${port}/stats/eurofxref/eurofxref-daily.xml`,
    requestCount: () => asked,
    answer: { status: 200, body },
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return feed
}
