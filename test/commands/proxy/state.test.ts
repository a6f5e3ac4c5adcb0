/** The files of the proxy: one process counts, damage is no forgetting, and disks that fail cost nothing twice. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { lockFolder } from '../../../src/commands/proxy/lock.ts'
import { openPurchaseBook, type Wanted } from '../../../src/commands/proxy/open-purchases.ts'
import { WITHHELD_FIELD } from '../../../src/rails/buying/withheld-fields.ts'

const newFolder = () => mkdtempSync(join(tmpdir(), 'bursar-state-'))

describe('the lock', () => {
  it('is one process’s only, also where many start at once beside the lock of a killed one', async () => {
    for (let round = 0; round < 5; round += 1) {
      const folder = newFolder()
      const killed = spawn(process.execPath, [
        '-e',
        `require('node:net').createServer().listen('${join(folder, 'lock')}', () => console.log('on'))`,
      ])
      await once(killed.stdout, 'data')
      await expect(lockFolder(folder)).rejects.toThrow('Another bursar proxy of this key is running')
      killed.kill('SIGKILL')
      await once(killed, 'exit')
      const locks = await Promise.allSettled(Array.from({ length: 8 }, () => lockFolder(folder)))
      const held = locks.flatMap((lock) => (lock.status === 'fulfilled' ? [lock.value] : []))
      expect(held.length).toBeLessThanOrEqual(1)
      for (const unlock of held) unlock()
      const unlock = await lockFolder(folder)
      expect(readdirSync(folder)).toHaveLength(1)
      unlock()
    }
  })
})

const wanted: Wanted = {
  method: 'GET',
  url: 'https://seller.example/report',
  body: null,
  key: null,
  fields: {},
  secrets: { fields: {}, bearer: null },
}
const waits = () => false

function openBook(folder: string) {
  const reports: string[] = []
  const limits = { maxMicros: 100n, budgetMicros: 1_000n }
  return { book: openPurchaseBook(folder, { ...limits, report: (line) => reports.push(line) }), reports }
}

async function hold(book: ReturnType<typeof openBook>['book'], change: Partial<Wanted> = {}) {
  const held = await book.hold({ ...wanted, ...change }, waits)
  if (typeof held === 'string') throw new Error(held)
  return held
}

describe('open purchases', () => {
  it('are not given to another login', async () => {
    const { book } = openBook(newFolder())
    const alice = await hold(book, { secrets: { fields: {}, bearer: 'alice' } })
    book.release(alice)
    const others = [
      { fields: {}, bearer: 'bob' },
      { fields: {}, bearer: null },
      { fields: { cookie: 'id=bob' }, bearer: 'alice' },
      { fields: { 'x-api-key': 'alice' }, bearer: null },
    ]
    for (const secrets of others)
      expect((await hold(book, { secrets })).purchase.key).not.toBe(alice.purchase.key)
    const again = await hold(book, { secrets: { fields: { 'x-signature': '2' }, bearer: 'alice' } })
    expect(again.purchase.key).toBe(alice.purchase.key)
    book.stop()
  })

  it('of one name are not given to another login either', async () => {
    const { book } = openBook(newFolder())
    await hold(book, { key: 'one', secrets: { fields: {}, bearer: 'alice' } })
    expect(await book.hold({ ...wanted, key: 'one', secrets: { fields: {}, bearer: 'bob' } }, waits)).toBe(
      'idempotency_key_reused',
    )
    book.stop()
  })

  it('are as they were where the disk fails after the purchase', async () => {
    const folder = newFolder()
    const { book, reports } = openBook(folder)
    const held = await hold(book)
    renameSync(join(folder, 'open'), join(folder, 'away'))
    book.update(held, { chargedMicros: 7n })
    book.release(held)
    expect(book.spentMicros()).toBe(7n)
    expect((await hold(book)).purchase.key).toBe(held.purchase.key)
    book.give(held)
    book.close(held)
    expect([reports.length > 0, book.spentMicros()]).toEqual([true, 7n])
    expect(await book.hold(wanted, waits)).toBe('storage_failed')
    book.stop()
    renameSync(join(folder, 'away'), join(folder, 'open'))
    const later = openBook(folder).book
    expect(later.spentMicros()).toBe(7n)
    later.stop()
  })

  it('forget what a killed process was writing', () => {
    const folder = newFolder()
    openBook(folder).book.stop()
    for (const name of ['spent.json.x.new', 'open/1.json.y.new']) writeFileSync(join(folder, name), '{')
    openBook(folder).book.stop()
    expect(readdirSync(folder, { recursive: true })).toEqual(['open'])
  })

  it('stop the start where a file is damaged', async () => {
    const folder = newFolder()
    const { book } = openBook(folder)
    const held = await hold(book)
    book.give(held)
    book.close(held)
    await hold(book)
    book.stop()
    const files = ['spent.json', `open/${readdirSync(join(folder, 'open'))[0]}`]
    for (const name of files) {
      const path = join(folder, name)
      const text = readFileSync(path, 'utf8')
      for (const damaged of ['', text.slice(0, -5), text.replaceAll(/"\d+"/g, '"-5"'), '{}']) {
        writeFileSync(path, damaged)
        expect(() => openBook(folder)).toThrow(`${path} is damaged`)
      }
      writeFileSync(path, text)
    }
  })
})

describe('fields that no purchase carries', () => {
  it('are the same for the gateway, the proxy and the client', () => {
    const client = readFileSync('src/client/paying-fetch.ts', 'utf8')
    expect(client).toContain(WITHHELD_FIELD.source)
    expect(readFileSync('src/commands/proxy/wanted.ts', 'utf8')).toContain('WITHHELD_FIELD.test(')
    expect(readFileSync('src/rails/buying/request.ts', 'utf8')).toContain('WITHHELD_FIELD.test(')
  })
})
