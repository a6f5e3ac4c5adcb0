import { rename, rm, utimes, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { screenSandboxSuffix } from '../../policies/aml/sandbox-suffix.ts'
import { screenAddress } from '../../policies/aml/screen-address.ts'
import { findWorst } from '../../policies/aml/screening.ts'
import { randomToken } from '../../src/core/base/ids.ts'
import { silentLog } from '../../src/core/base/log.ts'
import type { Address } from '../../src/providers/chain/port.ts'
import { createSanctionsFile } from '../../src/providers/sanctions/file.ts'
import { createOfacExcerpt } from '../../src/providers/sanctions/ofac-excerpt.ts'
import { createChainalysisScreening } from '../../src/providers/screening/chainalysis.ts'
import { joinScreening } from '../../src/providers/screening/joined.ts'
import { createListScreening } from '../../src/providers/screening/listed.ts'
import { noScreening } from '../../src/providers/screening/none.ts'
import type { AddressScreening } from '../../src/providers/screening/port.ts'
import { createSandboxScreening } from '../../src/providers/screening/sandbox.ts'
import { lowerCase } from '../../src/rails/wallets/store.ts'
import { json, listenLocally } from './local-server.ts'

const unlistedAddress: Address = `0x${'1'.repeat(40)}`
const lazarus: Address = '0x098B716B8Aaf21512996dC57EB0615e2383E2f96'
const unavailable = (retryAfter = 5) => ({
  code: 'screening_unavailable',
  members: expect.objectContaining({ retryAfter }),
})

describe('screening: sandbox and list together', () => {
  const screening = joinScreening(
    [createListScreening(createOfacExcerpt(), screenAddress), createSandboxScreening(screenSandboxSuffix)],
    findWorst,
  )

  it('blocks a sanctioned address in any case, and the sandbox’s own list', async () => {
    for (const address of [lazarus, lowerCase(lazarus)])
      expect(await screening.screen(address)).toEqual({ result: 'blocked', lists: ['ofac'] })
    expect(await screening.screen(`0x${'0'.repeat(36)}9999`)).toEqual({
      result: 'blocked',
      lists: ['sandbox'],
    })
    expect(await screening.screen(`0x${'0'.repeat(36)}8888`)).toEqual({
      result: 'review',
      lists: ['sandbox'],
    })
    expect(await screening.screen(unlistedAddress)).toEqual({ result: 'clear', lists: ['ofac', 'sandbox'] })
  })

  it('clears no address when one of several lists is unavailable', async () => {
    const joined = joinScreening([createSandboxScreening(screenSandboxSuffix), noScreening], findWorst)
    await expect(joined.screen(unlistedAddress)).rejects.toMatchObject(unavailable(60))
  })

  it('includes a list of lower-case addresses, with its source and date', async () => {
    const { addresses, source, date } = await createOfacExcerpt().latest()
    expect([...addresses].filter((address) => !/^0x[0-9a-f]{40}$/.test(address))).toEqual([])
    expect(addresses.size).toBeGreaterThan(10)
    expect([source, date]).toEqual([expect.stringContaining('OFAC'), '2025-03-21'])
    // Removed from the list in March 2025.
    expect(addresses).not.toContain('0xd90e2f925da726b50c4ed8d0fb90ad053324f31b')
  })
})

describe('screening: a list in a file', () => {
  const path = join(tmpdir(), `sanctions-${randomToken(6)}.json`)
  const write = (document: unknown) =>
    writeFile(path, typeof document === 'string' ? document : JSON.stringify(document))
  const list = { source: 'Ministry', date: '2026-11-01', addresses: [`0x${'AB'.repeat(20)}`], names: ['X Y'] }
  const screening = (sanctions = createSanctionsFile({ path, log: silentLog })) =>
    createListScreening(sanctions, screenAddress)
  const listed: Address = `0x${'aB'.repeat(20)}`
  afterEach(() => rm(path, { force: true }))

  it('is compared case-insensitively, and keeps its names', async () => {
    await write(list)
    expect(await screening().screen(listed)).toEqual({ result: 'blocked', lists: ['sanctions'] })
    expect(await screening().screen(unlistedAddress)).toEqual({ result: 'clear', lists: ['sanctions'] })
    expect(await createSanctionsFile({ path, log: silentLog }).latest()).toMatchObject({
      source: 'Ministry',
      date: '2026-11-01',
      names: ['X Y'],
    })
  })

  it('is read again when it changes: written, replaced, or restored with the same length and time', async () => {
    const asked = screening()
    await write(list)
    const long = new Date('2026-01-01T00:00:00Z')
    await utimes(path, long, long)
    expect((await asked.screen(unlistedAddress)).result).toBe('clear')
    await write({ ...list, addresses: [unlistedAddress] })
    await utimes(path, long, long)
    expect((await asked.screen(unlistedAddress)).result).toBe('blocked')
    await writeFile(`${path}.new`, JSON.stringify(list))
    await rename(`${path}.new`, path)
    expect((await asked.screen(unlistedAddress)).result).toBe('clear')
  })

  it.each([
    ['invalid JSON', '{'],
    ['nothing', ''],
    ['a truncated address', { ...list, addresses: ['0x1234567890'] }],
    ['an empty list', { ...list, addresses: [] }],
    ['no source', { ...list, source: undefined }],
    ['no date', { ...list, date: 'yesterday' }],
    ['an unexpected document', { rails: [] }],
    ['a list within', [list]],
  ])('fails closed on %s, until it is fixed', async (_name, document) => {
    const asked = screening()
    await write(list)
    expect((await asked.screen(unlistedAddress)).result).toBe('clear')
    await write(document)
    await expect(asked.screen(unlistedAddress)).rejects.toMatchObject(unavailable())
    await expect(asked.screen(unlistedAddress)).rejects.toMatchObject(unavailable())
    await write(list)
    expect((await asked.screen(unlistedAddress)).result).toBe('clear')
  })

  it('fails closed when the file is missing', async () => {
    await expect(screening().screen(unlistedAddress)).rejects.toMatchObject(unavailable())
  })
})

describe('screening: chainalysis', () => {
  const asked: IncomingMessage[] = []
  let answer: (response: ServerResponse) => void = () => {}
  const server = createServer((request, response) => {
    asked.push(request)
    answer(response)
  })
  let screening: AddressScreening
  beforeAll(async () => {
    const url = `${await listenLocally(server)}/`
    screening = createChainalysisScreening({ url, apiKey: 'a-key', log: silentLog, timeoutMs: 300 })
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })

  it('queries the address with the key, and clears one without findings', async () => {
    answer = json({ identifications: [] })
    expect(await screening.screen(unlistedAddress)).toEqual({ result: 'clear', lists: ['chainalysis'] })
    expect(asked.at(-1)?.url).toBe(`/api/v1/address/${unlistedAddress}`)
    expect(asked.at(-1)?.headers).toMatchObject({ 'x-api-key': 'a-key', accept: 'application/json' })
  })

  it('blocks an identified address', async () => {
    answer = json({
      identifications: [{ category: 'sanctions', name: 'SANCTIONS: …', description: '…', url: 'https://…' }],
    })
    expect(await screening.screen(lazarus)).toEqual({ result: 'blocked', lists: ['chainalysis'] })
  })

  it.each([
    ['500', json({}, 500), 5],
    ['403, of a wrong key', json({ message: 'Forbidden' }, 403), 5],
    [
      '429 with a wait',
      (response: ServerResponse) => void response.writeHead(429, { 'retry-after': '17' }).end(),
      17,
    ],
    ['204', (response: ServerResponse) => void response.writeHead(204).end(), 5],
    ['a redirect', (response: ServerResponse) => void response.writeHead(302, { location: '/' }).end(), 5],
    ['invalid JSON', (response: ServerResponse) => void response.end('<html>'), 5],
    ['an empty object', json({}), 5],
    ['no list', json({ identifications: null }), 5],
    ['a list of something else', json({ identifications: ['sanctions'] }), 5],
    ['a hang-up', (response: ServerResponse) => void response.destroy(), 5],
    ['silence', () => {}, 5],
    [
      'an answer that never ends',
      (response: ServerResponse) => void response.writeHead(200).write('{"identifications":['),
      5,
    ],
  ])('fails closed on %s, without exposing the key', async (_name, next, retryAfter) => {
    answer = next
    const failure: unknown = await screening.screen(unlistedAddress).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'screening_unavailable', members: { retryAfter } })
    expect(String(failure)).not.toContain('a-key')
  })

  it('fails closed when nothing listens', async () => {
    const unreachable = createChainalysisScreening({
      url: 'http://127.0.0.1:1',
      apiKey: null,
      log: silentLog,
    })
    await expect(unreachable.screen(unlistedAddress)).rejects.toMatchObject({ code: 'screening_unavailable' })
  })
})
