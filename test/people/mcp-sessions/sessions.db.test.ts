/** MCP sessions and their elicitations, in the shared store of both engines. */
import { expect, it } from 'vitest'
import { insertKey } from '../../../src/people/identity/store.ts'
import {
  answerQuestion,
  awaitAnswer,
  awaitCancellation,
  cancelAsking,
  closeQuestion,
  openQuestion,
} from '../../../src/people/mcp-sessions/questions.ts'
import {
  endMcpSession,
  findMcpSession,
  openMcpSession,
  SESSIONS_PER_KEY,
  sweepMcpSessions,
} from '../../../src/people/mcp-sessions/sessions.ts'
import { onBothEngines } from '../../engines.ts'
import { buildKeyPrincipal, newPerson, noon } from '../../kernel/scene.ts'

const HOUR_MS = 60 * 60 * 1000
const after = (ms: number) => new Date(noon.getTime() + ms)
const capabilities = { elicitation: { url: {} } }

onBothEngines('MCP sessions', (database) => {
  const newKey = async () => {
    const { account } = await newPerson(database())
    const { key } = buildKeyPrincipal(account)
    await insertKey(database(), account.id, { ...key, secretHash: null })
    return key.id
  }
  const open = (keyId: string, now = noon) => openMcpSession(database(), { keyId, capabilities, now })
  const find = (keyId: string, id: string, now = noon) => findMcpSession(database(), { id, keyId, now })
  const openSession = async (keyId: string) => {
    const session = await find(keyId, await open(keyId))
    if (session === undefined) throw new Error('the session does not exist')
    return session
  }

  it('are found by their key alone, by the whole id, and until they are ended', async () => {
    const [mine, other] = [await newKey(), await newKey()]
    const id = await open(mine)
    const session = await find(mine, id)
    expect(session?.capabilities).toEqual(capabilities)
    expect(await find(other, id)).toBeUndefined()
    expect(await find(mine, id.slice(0, -1))).toBeUndefined()
    expect(await find(mine, '')).toBeUndefined()
    if (session !== undefined) await endMcpSession(database(), session)
    expect(await find(mine, id)).toBeUndefined()
  })

  it('store no usable id', async () => {
    const key = await newKey()
    const id = await open(key)
    const rows = await database()
      .kysely.selectFrom('mcp_session')
      .selectAll()
      .where('key_id', '=', key)
      .execute()
    expect(JSON.stringify(rows)).not.toContain(id)
    expect(rows.every(({ id_hash }) => id_hash.length === 32)).toBe(true)
  })

  it('expire a day after their last use, and are then swept', async () => {
    const key = await newKey()
    const id = await open(key)
    expect(await find(key, id, after(23 * HOUR_MS))).toBeDefined()
    expect(await find(key, id, after(46 * HOUR_MS))).toBeDefined()
    expect(await find(key, id, after(70 * HOUR_MS + 1))).toBeUndefined()
    await sweepMcpSessions(database(), after(70 * HOUR_MS + 1))
    const rows = await database()
      .kysely.selectFrom('mcp_session')
      .select('key_id')
      .where('key_id', '=', key)
      .execute()
    expect(rows).toEqual([])
  })

  it('are limited per key, also under concurrent openings: the oldest is closed', async () => {
    const [key, other] = [await newKey(), await newKey()]
    const elsewhere = await open(other)
    const oldest = await open(key, noon)
    await Promise.all(Array.from({ length: SESSIONS_PER_KEY }, () => open(key, after(1_000))))
    const rows = await database()
      .kysely.selectFrom('mcp_session')
      .select('key_id')
      .where('key_id', '=', key)
      .execute()
    expect(rows).toHaveLength(SESSIONS_PER_KEY)
    expect(await find(key, oldest)).toBeUndefined()
    expect(await find(other, elsewhere)).toBeDefined()
  })

  it('deliver an answer to its waiting call: once, the first one, and in the right session', async () => {
    const [mine, other] = [await openSession(await newKey()), await openSession(await newKey())]
    const id = await openQuestion(database(), { session: mine, requestId: 1, now: noon })
    const waiting = awaitAnswer(database(), id, new AbortController().signal)
    await answerQuestion(database(), { session: other, id, answer: { from: 'another key' } })
    await answerQuestion(database(), { session: mine, id, answer: { from: 'the client' } })
    await answerQuestion(database(), { session: mine, id, answer: { from: 'the client, later' } })
    expect(await waiting).toEqual({ from: 'the client' })
    await closeQuestion(database(), id)
    const rows = await database()
      .kysely.selectFrom('mcp_question')
      .select('id')
      .where('id', '=', id)
      .execute()
    expect(rows).toEqual([])
  })

  it('deliver a cancellation to the waiting call of that id and session, before and after its answer', async () => {
    const [mine, other] = [await openSession(await newKey()), await openSession(await newKey())]
    const ended = new AbortController()
    const wait = async (session: typeof mine, requestId: string | number) => {
      const id = await openQuestion(database(), { session, requestId, now: noon })
      return { id, cancelled: awaitCancellation(database(), id, ended.signal) }
    }
    const [call, text, foreign] = [await wait(mine, 1), await wait(mine, '1'), await wait(other, 1)]
    await answerQuestion(database(), { session: mine, id: call.id, answer: {} })
    await cancelAsking(database(), { session: mine, requestId: 1 })
    expect(await call.cancelled).toBe(true)
    await endMcpSession(database(), other)
    expect(await foreign.cancelled).toBe(true)
    ended.abort()
    expect(await text.cancelled).toBe(false)
  })

  it('store no question of an aborted call', async () => {
    const session = await openSession(await newKey())
    const id = await openQuestion(database(), { session, requestId: 1, now: noon })
    const readQuestions = () =>
      database().kysely.selectFrom('mcp_question').select('id').where('id', '=', id).execute()
    await sweepMcpSessions(database(), after(HOUR_MS))
    expect(await readQuestions()).toHaveLength(1)
    await sweepMcpSessions(database(), after(HOUR_MS + 1))
    expect(await readQuestions()).toEqual([])
  })

  it('end a wait with its signal and with the session', async () => {
    const session = await openSession(await newKey())
    const ended = new AbortController()
    const question = { session, requestId: 'call', now: noon }
    const aborted = awaitAnswer(database(), await openQuestion(database(), question), ended.signal)
    const orphaned = awaitAnswer(
      database(),
      await openQuestion(database(), question),
      new AbortController().signal,
    )
    ended.abort()
    expect(await aborted).toBeUndefined()
    await endMcpSession(database(), session)
    expect(await orphaned).toBeUndefined()
  })
})
