/**
 * One embedded database for all gateways. It has a single session: whoever waits gets it in seeded order, for a statement or a
 * whole transaction, so transactions are serial and everything between them interleaves. A crash rolls an open one back.
 */
import type { PGlite } from '@electric-sql/pglite'
import type { Database } from '../../src/storage/database.ts'
import { databaseOnPool } from '../../src/storage/database-on-pool.ts'
import { openInMemory } from '../../src/storage/pglite.ts'
import { createSessionPool } from '../../src/storage/pglite-sessions.ts'
import type { Session, SessionPool } from '../../src/storage/session-pool.ts'
import type { Owner, Scheduler } from './scheduler.ts'
import type { Seeded } from './seeded.ts'

interface Waiter {
  readonly owner: Owner
  readonly take: (session: Session) => void
}

/** @property after number of statements of a session after which it is told. */
interface Watcher {
  readonly after: number
  readonly tell: (owner: Owner) => void
}

export class SharedDatabase {
  /** For the world, which reads between two steps and past the queue. */
  readonly books: Database
  readonly #pglite: PGlite
  readonly #session: Session
  readonly #scheduler: Scheduler
  readonly #random: Seeded
  readonly #world: Owner
  #holder: Owner | null = null
  #waiters: Waiter[] = []
  #isGranting = false
  #isInTransaction = false
  #watchers: Watcher[] = []

  private constructor(
    pglite: PGlite,
    session: Session,
    { scheduler, random, world }: { scheduler: Scheduler; random: Seeded; world: Owner },
  ) {
    this.#pglite = pglite
    this.#session = session
    this.#scheduler = scheduler
    this.#random = random
    this.#world = world
    this.books = databaseOnPool('pglite', {
      acquire: async () => ({ query: session.query, release: () => {} }),
      count: () => ({ busy: 0, idle: 1, waiting: 0 }),
      end: async () => {},
    })
  }

  /** @param functions statements that replace functions: known defects. */
  static async open(
    functions: readonly string[],
    parts: { scheduler: Scheduler; random: Seeded; world: Owner },
  ): Promise<SharedDatabase> {
    const { pglite } = await openInMemory()
    for (const text of functions) await pglite.exec(text)
    const session = await createSessionPool(pglite).acquire()
    return new SharedDatabase(pglite, session, parts)
  }

  get isIdle(): boolean {
    return this.#holder === null
  }

  /**
   * Whose session is the next to have run `after` statements, and is not released. What follows at once happens before its next
   * statement.
   */
  midst(after: number): { readonly owner: Promise<Owner>; readonly cancel: () => void } {
    let watcher: Watcher | undefined
    const owner = new Promise<Owner>((tell) => {
      watcher = { after, tell }
      this.#watchers.push(watcher)
    })
    const cancel = () => {
      this.#watchers = this.#watchers.filter((one) => one !== watcher)
    }
    return { owner, cancel }
  }

  /** A gateway's sessions. */
  poolOf(owner: Owner): SessionPool {
    return {
      acquire: () =>
        new Promise((take) => {
          // What is left of a dead gateway waits forever.
          if (owner.isDead) return
          this.#waiters.push({ owner, take })
          this.#grant()
        }),
      count: () => ({ busy: 0, idle: 1, waiting: 0 }),
      end: async () => {},
    }
  }

  /** Ends a crashed gateway's session. */
  async drop(owner: Owner): Promise<void> {
    this.#waiters = this.#waiters.filter((waiter) => waiter.owner !== owner)
    if (this.#holder === owner) {
      if (this.#isInTransaction) await this.#session.query('rollback', [])
      this.#isInTransaction = false
      this.#holder = null
    }
    this.#grant()
  }

  close(): Promise<void> {
    return this.#pglite.close()
  }

  #sessionOf(owner: Owner): Session {
    let isReleased = false
    let statements = 0
    return {
      query: (text, parameters) =>
        this.#scheduler.port(
          owner,
          'sql',
          async () => {
            if (isReleased) throw new Error(`a statement after its session was released: ${text}`)
            if (/^\s*begin/i.test(text)) this.#isInTransaction = true
            try {
              return await this.#scheduler.track(this.#session.query(text, parameters))
            } finally {
              if (/^\s*(commit|rollback)/i.test(text)) this.#isInTransaction = false
              statements += 1
              this.#tell(owner, statements)
            }
          },
          { isAnswerApart: !this.#isInTransaction || /^\s*commit/i.test(text) },
        ),
      release: () => {
        if (isReleased) return
        isReleased = true
        if (this.#holder !== owner) return
        this.#holder = null
        this.#grant()
      },
    }
  }

  #tell(owner: Owner, statements: number): void {
    const told = this.#watchers.filter(({ after }) => after === statements)
    if (told.length === 0) return
    this.#watchers = this.#watchers.filter((watcher) => !told.includes(watcher))
    for (const { tell } of told) tell(owner)
  }

  #grant(): void {
    if (this.#isGranting || this.#holder !== null || this.#waiters.length === 0) return
    this.#isGranting = true
    this.#scheduler.schedule(this.#world, 'grant', () => {
      this.#isGranting = false
      const [waiter] = this.#waiters.splice(this.#random.below(this.#waiters.length), 1)
      if (waiter === undefined) return
      this.#holder = waiter.owner
      waiter.take(this.#sessionOf(waiter.owner))
    })
  }
}
