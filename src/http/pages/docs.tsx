/** Documentation pages, generated from the OpenAPI document and the failure table. */
import { type FailureCode, failureCodes, failures } from '../../failures/failure.ts'
import { failureGuide } from '../../failures/failure-guide.ts'
import { problemExample } from '../openapi/problem.ts'
import { Document } from './shell.tsx'

/** The OpenAPI document in Swagger UI. */
export function ApiPage() {
  return (
    <Shell title="API" page="docs" isApi={true}>
      <div id="api">
        <noscript>
          This page requires JavaScript. The OpenAPI document is at{' '}
          <a href="/api/openapi.json">/api/openapi.json</a>.
        </noscript>
      </div>
    </Shell>
  )
}

export function ErrorsPage() {
  return (
    <Shell title="Errors" page="errors">
      <h1>Errors</h1>
      <p>
        Every error is <code>application/problem+json</code> (RFC 9457): <code>detail</code> says what
        happened, <code>hint</code> says what to do, <code>code</code> is stable, and <code>type</code> links
        to a page below. Retry a retryable request with the same <code>Idempotency-Key</code>.
      </p>
      <table>
        <thead>
          <tr>
            <th scope="col">Status</th>
            <th scope="col">Code</th>
            <th scope="col">Title</th>
            <th scope="col">Retry?</th>
          </tr>
        </thead>
        <tbody>
          {failureCodes.map((code) => (
            <tr>
              <td>{failures[code].status}</td>
              <td>
                <a href={`/errors/${code}`}>
                  <code>{code}</code>
                </a>
              </td>
              <td>{failures[code].title}</td>
              <td>{failures[code].retry ? 'yes' : 'no'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Shell>
  )
}

export function ErrorPage({ code }: { readonly code: FailureCode }) {
  const { status, title, retry } = failures[code]
  const { meaning, remedy, members } = failureGuide[code]
  return (
    <Shell title={title} page={`errors/${code}`}>
      <h1>{title}</h1>
      <p>
        <code>{code}</code>, status {status}
      </p>
      <h2>What it means</h2>
      <p>{meaning}</p>
      <h2>What to do</h2>
      <p>{remedy}</p>
      <h2>Can the request be retried?</h2>
      <p>{retry ? yes : no}</p>
      <h2>Members</h2>
      <p>
        <code>type</code>, <code>title</code>, <code>status</code>, <code>detail</code>, <code>instance</code>
        , <code>code</code>, <code>requestId</code>, often <code>hint</code>
        {Object.keys(members).map((name) => (
          <>
            , <code>{name}</code>
          </>
        ))}
        .
      </p>
      <h2>Example</h2>
      <pre>{JSON.stringify(problemExample(code), null, 2)}</pre>
    </Shell>
  )
}

const yes =
  'Yes, unchanged and with the same Idempotency-Key: after Retry-After if the response has it, otherwise once the cause is resolved.'
const no = 'No: the same request fails again until its cause is resolved.'

const swaggerUi = (
  <>
    <link rel="stylesheet" href="/assets/swagger-ui.css" />
    <script src="/assets/swagger-ui.js" defer />
  </>
)

function Shell({
  title,
  page,
  isApi = false,
  children,
}: {
  readonly title: string
  readonly page: string
  readonly isApi?: boolean
  readonly children?: unknown
}) {
  return (
    <Document title={title} style="docs" script="docs" before={isApi ? swaggerUi : ''}>
      <body>
        <header>
          <strong>Bursar</strong>
          <nav aria-label="Documentation">
            <a href="/docs">API</a> <a href="/errors">Errors</a> <a href="/api/openapi.json">OpenAPI</a>
          </nav>
        </header>
        <main class={isApi ? 'wide' : ''}>{children}</main>
        <footer id="feedback" data-page={page}>
          Was this page helpful?{' '}
          <button type="button" value="up">
            Yes
          </button>{' '}
          <button type="button" value="down">
            No
          </button>{' '}
          <span role="status" />
        </footer>
      </body>
    </Document>
  )
}
